// NumPy's archive of arrays (.npz): a ZIP file whose members are .npy files, stored or deflated.
//
// Read only, through the central directory, ZIP64 included. Every offset and length is checked
// against the file, a member's checksum against its bytes, and a claimed size against what deflate
// can at most expand to, before memory is taken.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/tensor/tensor.h"

namespace oncilla::tool {

// Names of the arrays in the archive, without ".npy", in the archive's order.
Result<std::vector<std::string>> ListNpz(const MappedFile& file);

// The array `key`; with an empty key the only one there is. A stored member is a view of the file.
// NotFound lists the keys.
Result<Tensor> ReadNpz(const std::shared_ptr<const MappedFile>& file, const std::string& key);

}  // namespace oncilla::tool
