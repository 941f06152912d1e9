// Newton's method in fixed point. A number is raw * 2^(bits - 31), with `bits` integer bits.
#include "engine/import/tflite/ops/quantize_fixed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/ops/nn/integer.h"

namespace oncilla {
namespace {

// The product of two numbers; their integer bits add up.
int32_t Product(int32_t a, int32_t b) { return MultiplyFixed(a, b, 0); }

// x * 2^by with the same number of integer bits, saturating.
int32_t Scaled(int32_t x, int by) {
  const int64_t wide = int64_t{x} << by;
  return static_cast<int32_t>(std::clamp<int64_t>(wide, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

}  // namespace

int64_t DivideByPowerOfTwo(int64_t x, int by) {
  const int64_t mask = (int64_t{1} << by) - 1;
  const int64_t above = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> by) + ((x & mask) > above ? 1 : 0);
}

FixedReciprocal ReciprocalOf(int32_t x, int digits) {
  const int zeros = std::countl_zero(static_cast<uint32_t>(x));
  // x as 1 + a with a in [0, 1), so that half of it is (a + 1) / 2.
  const int64_t a = (int64_t{static_cast<uint32_t>(x) << zeros}) - (int64_t{1} << 31);
  const auto half = static_cast<int32_t>((a + std::numeric_limits<int32_t>::max() + 1) / 2);
  // 48/17 and -32/17 with two integer bits: the linear first approximation of 1 / half.
  constexpr int32_t kOffset = 1515870810, kSlope = -1010580540, kOne = 1 << 29;
  int32_t y = Wrapped(int64_t{kOffset} + Product(half, kSlope));
  for (int i = 0; i < 3; ++i) {
    const int32_t miss = Wrapped(int64_t{kOne} - Product(half, y));
    y = Wrapped(int64_t{y} + Scaled(Product(y, miss), 2));
  }
  // Half of it: one integer bit less, and then none.
  return {Scaled(y, 1), digits - zeros};
}

FixedRoot InverseRootOf(int32_t x) {
  if (x <= 1) return {std::numeric_limits<int32_t>::max(), 0};
  int shift = 11;
  while (x >= (1 << 29)) {
    x /= 4;
    ++shift;
  }
  const int pairs = (std::countl_zero(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  shift -= pairs;
  x <<= 2 * pairs;
  // With three integer bits, for numbers from 1 on.
  constexpr int32_t kThreeHalves = (1 << 28) + (1 << 27), kHalfRootOfTwo = 1518500250;
  const auto half = static_cast<int32_t>(DivideByPowerOfTwo(x >> 1, 1));
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = Scaled(Product(Product(y, y), y), 6);
    y = Scaled(Wrapped(int64_t{Product(kThreeHalves, y)} - Product(half, cube)), 3);
  }
  y = Product(y, kHalfRootOfTwo);
  if (shift < 0) {
    y = Wrapped(static_cast<int64_t>(static_cast<uint64_t>(y) << -shift));
    shift = 0;
  }
  return {y, -shift};
}

uint16_t SigmoidSample(int i) {
  if (i >= 255) return 65535;
  const auto sigmoid = [](double x) { return 65536 / (1 + std::exp(-x / 24)); };
  const double missed = (sigmoid(i) + sigmoid(i + 1)) / 2 - sigmoid(i + 0.5);
  return static_cast<uint16_t>(std::round(sigmoid(i) - missed / 2));
}

}  // namespace oncilla
