// The table of elementwise expressions on integers and booleans as they lie in memory, and
// conversions between such numbers and floats.
//
// Integers wrap, so most expressions give at the width of their type what 64 bits cut to it would;
// rows of which that is not so (quotients, shifts, powers) have no function here.
#pragma once

#include <cstdint>

#include "engine/ops/math/elementwise.h"

namespace oncilla::cpu {

// out[i] = expression of x[i], y[i], z[i] for n elements. Operands that the row lacks are not read.
// `out` overlaps no operand.
using NativeFunction = void (*)(const void* x, const void* y, const void* z, void* out, int64_t n);

// i32, i64, u8 and bool; and f32, which is only converted here.
bool IsNative(DType dtype);

// Operands are of dtype `compute` (x of bool where it is a condition). Null where the row does not
// take it. Uses the best instruction set of this machine.
NativeFunction NativeFunctionOf(const ElementwiseRow& row, DType compute);

// What Cast does to n elements, between native dtypes.
void ConvertNative(DType from, const void* x, int64_t n, DType to, void* y);

}  // namespace oncilla::cpu
