// What quantised ops of ONNX and of com.microsoft have alike.
#pragma once

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// x in float, rounded, moved by the zero point (or kNoValue), cut to the range of `to`.
Result<ValueId> RoundInto(OnnxLowering& b, ValueId x, ValueId zero_point, DType to);

// Input x - input zero in i32. A vector of zero points stands for rows (of a first matrix), which
// need an axis behind it, or for columns.
Result<ValueId> Moved(OnnxLowering& b, size_t x, size_t zero, bool rows, std::string_view role);

}  // namespace oncilla
