// The table of elementwise expressions on integers and booleans in their own types, and conversions
// between such numbers and floats.
//
// Integers wrap, so most expressions give the same result in their own width as in 64 bits
// truncated to it; rows for which that is not true (quotients, shifts, powers) have no function
// here.
#pragma once

#include <cstdint>

#include "engine/ops/math/elementwise.h"

namespace oncilla::cpu {

// out[i] = expression of x[i], y[i], z[i] for n elements. Operands that the row does not have are
// not read. `out` must not overlap an operand.
using NativeFunction = void (*)(const void* x, const void* y, const void* z, void* out, int64_t n);

// i32, i64, u8 and bool; and f32, i8, i16 and u16, for conversions only.
bool IsNative(DType dtype);

// Operands are of dtype `compute` (x of bool if it is a condition). Null if the row does not
// support it. Uses the best instruction set of this machine.
NativeFunction NativeFunctionOf(const ElementwiseRow& row, DType compute);

// Applies Cast to n elements, between native dtypes.
void ConvertNative(DType from, const void* x, int64_t n, DType to, void* y);

}  // namespace oncilla::cpu
