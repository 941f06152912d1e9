// The engine has no map values. Maps at the inputs and outputs of a model, as models of
// scikit-learn have them, are replaced by tensors.
#pragma once

#include <deque>
#include <string>

#include "engine/import/onnx/reader.h"

namespace oncilla {

// An output Y that a ZipMap of the main graph computes becomes the tensor of the maps' values [N,
// C]; an additional output, "Y.labels", has the key of each column. An input M that is a map and
// that only CastMap and DictVectorizer read becomes two vectors, "M.keys" and "M.values", which
// these nodes read instead. Other maps stay, and are refused where they are needed. `names` stores
// the new names, and must live as long as the model.
void TellOnnxMapsAsTensors(OnnxModel& model, std::deque<std::string>& names);

}  // namespace oncilla
