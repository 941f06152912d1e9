// Maps are no values of the engine. Where a model has them at its ends, which is where models of
// scikit-learn have them, they are told in tensors.
#pragma once

#include <deque>
#include <string>

#include "engine/import/onnx/reader.h"

namespace oncilla {

// An output Y that a ZipMap of the main graph makes becomes the tensor of the maps' values [N, C];
// a further output, "Y.labels", has the key of each column. An input M that is a map and that only
// CastMap and DictVectorizer read becomes two vectors, "M.keys" and "M.values", which these nodes
// take in its place. Other maps stay, and are refused where they are needed. `names` holds the
// names that are new, and must live as long as the model.
void TellOnnxMapsAsTensors(OnnxModel& model, std::deque<std::string>& names);

}  // namespace oncilla
