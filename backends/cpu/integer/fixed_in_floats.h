// The rule of fixed point (MultiplyFixed of engine/ops/nn/integer.h) computed in floats, where
// these are certain of the result.
//
// With x a sum, m its multiplier, r = -shift its right shift, and v = x m / 2^(31 + r) exactly, the
// rule's two roundings come to one: results change from q - 1 to q where
//
//   v + h >= q - 1/2 for q > 0,    v - h >= q - 1/2 for q <= 0,    h = 2^-(r + 1),
//
// because the first rounding moves v by half of its last place, 2^-r, and the second one takes ties
// away from zero. So fl(x) * fl(m / 2^(31 + r)) + copysign(h, x), rounded to the nearest integer,
// is the result unless it lies about half way between two integers: four roundings move it by at
// most 4 * 2^-24 of its size, which is 6.2e-5 where it is below 256 in size. Larger ones are beyond
// the bounds of a byte either way. A result whose distance from its integer is at least kCertain is
// computed by MultiplyFixed instead, which is the case for about one in 5000.
#pragma once

#include <bit>
#include <cstdint>

namespace oncilla::cpu {

inline constexpr float kCertain = 0.4999F;

// Whether the formula above holds for these factors, for results that are bytes.
constexpr bool FixedInFloats(int32_t multiplier, int32_t shift) {
  return multiplier >= 0 && shift <= -1 && shift >= -30;
}

// m / 2^(31 + r) and h of the formula, for factors for which it holds.
struct FixedFloats {
  float scale = 0, half = 0;
};
inline FixedFloats FloatsOfFixed(int32_t multiplier, int32_t shift) {
  const auto power = [&](int32_t exponent) {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23);
  };
  return {static_cast<float>(multiplier) * power(shift - 31), power(shift - 1)};
}

}  // namespace oncilla::cpu
