// What recurrent layers of ONNX and of com.microsoft have in common: their attributes, by
// direction.
#pragma once

#include "engine/import/onnx/ops/quantize.h"

namespace oncilla {

struct RecurrentLayer {
  std::string op;  // the canonical op
  int gates = 1, directions = 1;
  bool batch_first = false, first_reverse = false;
  int64_t units = 0;
  std::vector<RecurrentAttrs> attrs;  // per direction
  bool bytes = false;                 // weights are 8-bit, with scales and zero points
  DynamicBytes x;                     // the quantised input that they are multiplied with
};

// Input 2 is the recurrent weights, which also determine the number of units.
Result<RecurrentLayer> ReadRecurrentLayer(OnnxLowering& b);

// Part d of a tensor that has one part per direction along `axis`; kNoValue for kNoValue.
Result<ValueId> PartOfDirection(OnnxLowering& b, ValueId all, int64_t d, int64_t axis,
                                std::string role);

}  // namespace oncilla
