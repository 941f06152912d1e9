// Fixed-point functions of LiteRT's reference kernels that take more than a product: for tables,
// which are made while importing. All of them are of 32-bit numbers whose binary point stands
// somewhere; products are rounded as MultiplyFixed (engine/ops/nn/integer.h) rounds them.
#pragma once

#include <cstdint>

namespace oncilla {

// x / 2^by, ties away from zero, for by from 0 to 62.
int64_t DivideByPowerOfTwo(int64_t x, int by);

// 1 / x of x > 0 as raw * 2^-(31 + bits), where `digits` bits of x stand before the binary point.
struct FixedReciprocal {
  int32_t raw = 0;
  int bits = 0;
};
FixedReciprocal ReciprocalOf(int32_t x, int digits);

// 1 / sqrt(x) of x >= 0 as a factor and its shift (of 0 as that of 1).
struct FixedRoot {
  int32_t multiplier = 0;
  int shift = 0;
};
FixedRoot InverseRootOf(int32_t x);

// The numbers 65536 * sigmoid(i / 24) for i from 0 to 255, lowered by half of what interpolating
// between neighbours would miss in the middle: the table that sigmoid and tanh of 16-bit integers
// interpolate in.
uint16_t SigmoidSample(int i);

}  // namespace oncilla
