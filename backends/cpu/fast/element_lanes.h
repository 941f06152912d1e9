// The table of elementwise expressions as fast functions on runs of floats.
//
// Booleans are the floats 0 and 1 here, so that a program of steps has one kind of tile.
#pragma once

#include <cstdint>

#include "engine/ops/math/elementwise.h"

namespace oncilla::cpu {

// out[i] = expression of x[i], y[i], z[i] for n elements. Operands that the row does not have are
// not read. `out` may be one of the operands.
using LaneFunction = void (*)(const float* x, const float* y, const float* z, float* out, int64_t n,
                              float alpha, float beta);

// For floating-point or boolean operands; null if the row does not accept them. Uses the best
// instruction set of this machine.
LaneFunction LaneFunctionOf(const ElementwiseRow& row, ElementClass operands);

// Converts n elements of any fixed-size dtype to floats, and back: saturated and truncated as by
// Cast.
void ToFloats(DType dtype, const void* from, int64_t n, float* to);
void FromFloats(const float* from, int64_t n, DType dtype, void* to);
// Writes the same value n times.
void FillFloats(float value, int64_t n, float* to);

}  // namespace oncilla::cpu
