// NumPy's array file (.npy): a magic, a version, a header that is a Python dictionary, then the
// elements.
//
// Read: format versions 1 to 3, both byte orders, both element orders, every number type of the
// engine, 'S' and 'U' text as strings. Refused with its name: everything else (objects are
// pickles, which are programs). Write: version 1, little endian, C order; bfloat16, which NumPy
// lacks, as the uint16 of its bits. Lengths are checked before anything is allocated.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/tensor/tensor.h"

namespace oncilla::tool {

// The tensor in `bytes`; where its elements need no change it is a view that shares `owner`.
Result<Tensor> ReadNpy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);

// What stands before the elements, padded so that they begin at a multiple of 64 bytes.
// Unimplemented for strings.
Result<std::string> NpyHeader(const TensorDesc& desc);

// Writes the file atomically.
Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace oncilla::tool
