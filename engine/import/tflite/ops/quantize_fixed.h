// Fixed-point functions of LiteRT's reference kernels that need more than a product: for tables,
// which are computed at import. All work on 32-bit fixed-point numbers; products are rounded as in
// MultiplyFixed (engine/ops/nn/integer.h).
#pragma once

#include <cstdint>

namespace oncilla {

// x / 2^by, ties away from zero, for by from 0 to 62.
int64_t DivideByPowerOfTwo(int64_t x, int by);

// 1 / x for x > 0 as raw * 2^-(31 + bits), where `digits` bits of x are before the binary point.
struct FixedReciprocal {
  int32_t raw = 0;
  int bits = 0;
};
FixedReciprocal ReciprocalOf(int32_t x, int digits);

// 1 / sqrt(x) for x >= 0 as a factor and its shift (for 0 that of 1).
struct FixedRoot {
  int32_t multiplier = 0;
  int shift = 0;
};
FixedRoot InverseRootOf(int32_t x);

// The numbers 65536 * sigmoid(i / 24) for i from 0 to 255, lowered by half the error of
// interpolation at the midpoint between neighbours: the table in which sigmoid and tanh of 16-bit
// integers interpolate.
uint16_t SigmoidSample(int i);

}  // namespace oncilla
