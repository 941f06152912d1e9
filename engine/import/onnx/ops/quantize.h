// What quantised ops of ONNX and of com.microsoft have in common.
#pragma once

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// x in float, rounded, plus the zero point (or kNoValue), saturated to the range of `to`.
Result<ValueId> RoundInto(OnnxLowering& b, ValueId x, ValueId zero_point, DType to,
                          std::string_view role = "");

// x in u8 with scale and zero point from the range of x itself, or of `ranged`, extended to contain
// zero.
struct DynamicBytes {
  ValueId x = kNoValue, scale = kNoValue, zero = kNoValue;
};
Result<DynamicBytes> AddDynamicBytes(OnnxLowering& b, ValueId x, std::string_view role,
                                     ValueId ranged = kNoValue);

// Input x - input zero in i32. A vector of zero points is one per row (of a first matrix), which
// needs another axis, or one per column.
Result<ValueId> Moved(OnnxLowering& b, size_t x, size_t zero, bool rows, std::string_view role);

// The inputs of an exact product of two quantised matrices.
struct IntegerProduct {
  size_t a = 0, b = 1, a_zero = 2, b_zero = 3;
};
// Its sums in i32. Zero points are scalars, vectors for rows of a and columns of b, or broadcast
// along the operands.
Result<ValueId> AddIntegerProduct(OnnxLowering& b, const IntegerProduct& product,
                                  const MatMulIntegerAttrs& attrs, std::string_view role);
// round(sums * scale) + zero in `to`, as ONNX Runtime computes it: float factors, ties to even.
Result<ValueId> AddRequantized(OnnxLowering& b, ValueId sums, ValueId scale, ValueId zero, DType to,
                               std::string_view role);

}  // namespace oncilla
