// Floats of 8 and 4 bits as storage: conversion from and to double, rounded to nearest even.
//
// A format consists of a sign, an exponent, a mantissa, and the meaning of its largest codes. E8M0
// is separate: it has neither sign nor mantissa and holds powers of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace oncilla {

struct SmallFloatFormat {
  // The codes that are not finite numbers: none; infinities and NaNs as in IEEE 754; NaN as the
  // largest magnitude ("fn"); NaN in place of negative zero ("fnuz").
  enum class Specials : uint8_t { kNone, kIeee, kLargest, kNegativeZero };
  int exponent_bits, mantissa_bits, bias;
  Specials specials;

  constexpr int sign_bit() const { return exponent_bits + mantissa_bits; }
  // The code of the largest finite number.
  constexpr int largest() const {
    const int all = (1 << sign_bit()) - 1;
    if (specials == Specials::kLargest) return all - 1;
    return specials == Specials::kIeee ? all - (1 << mantissa_bits) : all;
  }
};
inline constexpr SmallFloatFormat kE4M3FN = {4, 3, 7, SmallFloatFormat::Specials::kLargest};
inline constexpr SmallFloatFormat kE4M3FNUZ = {4, 3, 8, SmallFloatFormat::Specials::kNegativeZero};
inline constexpr SmallFloatFormat kE5M2 = {5, 2, 15, SmallFloatFormat::Specials::kIeee};
inline constexpr SmallFloatFormat kE5M2FNUZ = {5, 2, 16, SmallFloatFormat::Specials::kNegativeZero};
inline constexpr SmallFloatFormat kE2M1 = {2, 1, 1, SmallFloatFormat::Specials::kNone};

inline double FromSmallFloat(const SmallFloatFormat& f, uint8_t code) {
  using Specials = SmallFloatFormat::Specials;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const int sign = code >> f.sign_bit() & 1, magnitude = code & ((1 << f.sign_bit()) - 1);
  if (f.specials == Specials::kNegativeZero && sign == 1 && magnitude == 0) return kNan;
  double value = 0;
  if (magnitude > f.largest()) {
    const bool infinite = f.specials == Specials::kIeee && magnitude == f.largest() + 1;
    value = infinite ? std::numeric_limits<double>::infinity() : kNan;
  } else {
    const int exponent = magnitude >> f.mantissa_bits;
    const int mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
    value = std::ldexp(whole, std::max(exponent, 1) - f.bias - f.mantissa_bits);
  }
  return sign == 1 ? -value : value;
}

// A magnitude above the largest finite number, infinity included, becomes that number with
// `saturate` (and always where the format has neither infinity nor NaN), else infinity or NaN. A
// NaN becomes NaN, or negative zero where there is none, as in ml_dtypes.
inline uint8_t ToSmallFloat(const SmallFloatFormat& f, double x, bool saturate) {
  using Specials = SmallFloatFormat::Specials;
  const int sign = std::signbit(x) ? 1 << f.sign_bit() : 0;
  const int nan = f.specials == Specials::kNegativeZero ? 1 << f.sign_bit()
                  : f.specials == Specials::kLargest    ? sign | (f.largest() + 1)
                  : f.specials == Specials::kIeee
                      ? sign | (f.largest() + (1 << (f.mantissa_bits - 1)) + 1)
                      : 1 << f.sign_bit();
  if (std::isnan(x)) return static_cast<uint8_t>(nan);
  const double size = std::abs(x);
  int magnitude = f.largest() + 1;
  if (!std::isinf(size) && size < std::ldexp(1.0, 32)) {
    // The smallest exponent is that of the smallest normal number: below it the step size is
    // constant.
    int exponent = 1 - f.bias;
    if (size > 0) exponent = std::max(exponent, std::ilogb(size));
    const auto steps =
        static_cast<int>(std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent)));
    // A carry out of the mantissa lands in the exponent, where it belongs.
    magnitude = ((exponent + f.bias) << f.mantissa_bits) + steps - (1 << f.mantissa_bits);
  }
  if (magnitude > f.largest()) {
    if (saturate || f.specials == Specials::kNone) {
      magnitude = f.largest();
    } else if (f.specials == Specials::kIeee) {
      magnitude = f.largest() + 1;
    } else {
      return static_cast<uint8_t>(nan);
    }
  }
  if (magnitude == 0 && f.specials == Specials::kNegativeZero) return 0;
  return static_cast<uint8_t>(sign | magnitude);
}

enum class PowerRounding : uint8_t { kUp, kDown, kNearest };

inline double FromE8M0(uint8_t code) {
  return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}
// Converts by the bits of the float, as ONNX defines it: the sign is ignored, zero becomes the
// smallest power, NaN and infinities become NaN. "Up" is away from zero; kNearest rounds ties up.
// With `saturate`, values beyond the largest power become that power, else NaN.
inline uint8_t ToE8M0(float x, bool saturate, PowerRounding rounding) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0xff) return 255;
  bool up = rounding == PowerRounding::kUp && mantissa != 0;
  if (rounding == PowerRounding::kNearest) {
    up = (mantissa & 0x400000) != 0 && ((mantissa & 0x3fffff) != 0 || exponent != 0);
  }
  if (up && exponent == 0xfe && saturate) up = false;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

}  // namespace oncilla
