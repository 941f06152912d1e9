// An ONNX file as a ModelSource. Inputs and outputs have the graph's names; feeds and fetches may
// name any tensor of the graph.
#pragma once

#include <memory>
#include <string>

#include "engine/base/file.h"
#include "engine/import/model_source.h"

namespace oncilla {

// External data are read from the folder of the file.
Result<std::unique_ptr<ModelSource>> OpenOnnx(std::shared_ptr<const MappedFile> file);

}  // namespace oncilla
