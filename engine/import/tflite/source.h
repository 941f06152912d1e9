// A TFLite file as a ModelSource. Inputs and outputs have the signature's names, or in a file
// without signatures those of the main subgraph's tensors; feeds and fetches may also name any
// tensor.
#pragma once

#include <memory>

#include "engine/base/file.h"
#include "engine/import/model_source.h"

namespace oncilla {

Result<std::unique_ptr<ModelSource>> OpenTflite(std::shared_ptr<const MappedFile> file);

}  // namespace oncilla
