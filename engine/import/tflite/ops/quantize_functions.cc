// Functions of one quantised input; most are tables.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/import/tflite/ops/quantize_fixed.h"
#include "engine/import/tflite/ops/quantize_lookup.h"
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

float ScaleOf(const TfliteTensor& tensor) {
  return tensor.quantization.scale.empty() ? 1.0f : tensor.quantization.scale[0];
}

// Sigmoid and tanh of 16-bit integers have the same first step: x is converted to steps of 1 /
// 12288, for a table with 24 samples per unit. Scales that are the powers of two for which LiteRT's
// kernels are written count as exact.
struct SigmoidInput {
  int64_t multiplier = 0;
  int shift = 0;
  int64_t operator()(int64_t x) const {
    const int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
    return (x * multiplier + half) >> shift;
  }
};

Result<SigmoidInput> SigmoidInputOf(float scale, int most_left) {
  int exponent = 0;
  const bool power = std::frexp(scale, &exponent) == 0.5f;
  const int left = 12 + exponent - 1;
  if (power && left >= 0 && left <= most_left) return SigmoidInput{int64_t{3} << left, 0};
  SigmoidInput input;
  double multiplier = double{scale} * 4096.0 * 3.0;
  if (multiplier >= 2147483648.0) return Unsupported("a scale of ", scale);
  while (multiplier <= 32767.0 / 2.0 && input.shift <= 30) {
    ++input.shift;
    multiplier *= 2;
  }
  input.multiplier = static_cast<int64_t>(multiplier);
  return input;
}

Status RequireScale(const TfliteTensor& output, double scale) {
  if (double{ScaleOf(output)} == scale && TfliteZeroOf(output) == 0) return {};
  return Unsupported("to 16 bits with the scale ", ScaleOf(output), "; ", scale, " is");
}

// The product of two 16-bit numbers, doubled and rounded to its upper half.
int16_t RoundedHigh(int16_t a, int16_t b) {
  constexpr auto kLeast = std::numeric_limits<int16_t>::min();
  if (a == kLeast && b == kLeast) return std::numeric_limits<int16_t>::max();
  const int32_t product = int32_t{a} * b;
  return static_cast<int16_t>((product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}
int16_t CutHigh(int16_t a, int16_t b) {
  constexpr auto kLeast = std::numeric_limits<int16_t>::min();
  if (a == kLeast && b == kLeast) return std::numeric_limits<int16_t>::max();
  return static_cast<int16_t>(int32_t{a} * b / (1 << 15));
}

int16_t ShiftedLeft(int16_t x, int by) {
  const int64_t wide = int64_t{x} << std::min(by, 31);
  return static_cast<int16_t>(std::clamp<int64_t>(wide, std::numeric_limits<int16_t>::min(),
                                                  std::numeric_limits<int16_t>::max()));
}

// Reduces a 31-bit multiplier to 15 bits.
int16_t Narrowed(int32_t multiplier) {
  constexpr int32_t kHalf = 1 << 15;
  if (multiplier >= std::numeric_limits<int32_t>::max() - kHalf) {
    return std::numeric_limits<int16_t>::max();
  }
  return static_cast<int16_t>((multiplier + kHalf) >> 16);
}

}  // namespace

Result<Values> LowerQuantisedLogistic(TfliteLowering& b) {
  const TfliteTensor& to = b.output_tensor();
  if (b.dtype() != DType::kI16) {
    return TfliteTabulatedReal(b, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  }
  ONCILLA_TRY(RequireScale(to, 1.0 / 32768));
  ONCILLA_ASSIGN(const SigmoidInput input, SigmoidInputOf(ScaleOf(b.tensor(0)), 0));
  return TfliteTabulated(b, [&](int64_t stored) {
    const int64_t x = input(stored), size = std::abs(x), at = size >> 9;
    int64_t y = int64_t{0x7FFF} << 10;
    if (at < 255) {
      const int64_t here = SigmoidSample(static_cast<int>(at));
      const int64_t next = SigmoidSample(static_cast<int>(at) + 1);
      y = (here << 9) + (size & 0x1FF) * (next - here);
    }
    y = x >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1;
    return y >> 10;
  });
}

Result<Values> LowerQuantisedTanh(TfliteLowering& b) {
  if (b.dtype() != DType::kI16) {
    return TfliteTabulatedReal(b, [](float x) { return std::tanh(x); });
  }
  ONCILLA_TRY(RequireScale(b.output_tensor(), 1.0 / 32768));
  ONCILLA_ASSIGN(const SigmoidInput input, SigmoidInputOf(ScaleOf(b.tensor(0)), 1));
  return TfliteTabulated(b, [&](int64_t stored) {
    const int64_t x = input(stored), size = std::abs(x), at = size >> 8;
    int64_t y = int64_t{0xFFFF} << 8;
    if (at < 255) {
      const int64_t here = SigmoidSample(static_cast<int>(at));
      const int64_t next = SigmoidSample(static_cast<int>(at) + 1);
      y = (here << 8) + (size & 0xFF) * (next - here);
    }
    constexpr int64_t kMiddle = 1 << 23, kHalf = 1 << 7;
    y = x >= 0 ? y - kMiddle + kHalf : -y + kMiddle + kHalf - 1;
    return y >> 8;
  });
}

Result<Values> LowerQuantisedExp(TfliteLowering& b) {
  return TfliteTabulatedReal(b, [](float x) { return std::exp(x); });
}

Result<Values> LowerQuantisedElu(TfliteLowering& b) {
  return TfliteTabulatedReal(b, [](float x) { return x < 0 ? std::expm1(x) : x; });
}

Result<Values> LowerQuantisedGelu(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool approximate, b.Flag(0));
  constexpr auto kRootOfHalf = 0.70710678118654752440f, kRoot2ByPi = 0.79788456080286535588f;
  if (!approximate) {
    return TfliteTabulatedReal(b, [&](float x) { return 0.5f * x * std::erfc(x * -kRootOfHalf); });
  }
  return TfliteTabulatedReal(b, [&](float x) {
    return 0.5f * x * (1.0f + std::tanh(kRoot2ByPi * (x + 0.044715f * x * x * x)));
  });
}

// For numbers that are not positive, the result is the lowest stored number.
Result<Values> LowerQuantisedLog(TfliteLowering& b) {
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.output_type()));
  const TfliteTensor& to = b.output_tensor();
  const auto steps = static_cast<float>(range.least - static_cast<double>(TfliteZeroOf(to)));
  const float least = steps * ScaleOf(to);
  return TfliteTabulatedReal(b, [&](float x) { return x <= 0 ? least : std::log(x); });
}

// Roots are rounded towards zero.
Result<Values> LowerQuantisedSqrt(TfliteLowering& b) {
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  const float x_scale = ScaleOf(from), scale = ScaleOf(to);
  ONCILLA_ASSIGN(Values out, TfliteTabulated(b, [&](int64_t stored) {
                   const float x =
                       x_scale * static_cast<float>(std::max<int64_t>(stored - x_zero, 0));
                   return static_cast<int64_t>(std::min(std::sqrt(x) / scale, 1e6f)) + zero;
                 }));
  ONCILLA_TRY(TfliteRequireNotNegative(b, 0));
  return out;
}

Result<Values> LowerQuantisedRsqrt(TfliteLowering& b) {
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  const float x_scale = ScaleOf(from), scale = ScaleOf(to);
  Result<Values> out = Values();
  if (b.dtype() == DType::kI16) {
    const float most = 32767 * scale;
    out = TfliteTabulatedReal(b, [&](float x) { return x <= 0 ? most : 1.0f / std::sqrt(x); });
  } else if (b.dtype() == DType::kI8) {
    ONCILLA_ASSIGN(const TfliteFixedPoint factor,
                   TfliteFixedPointOf(1.0 / double{std::sqrt(x_scale) * scale}));
    constexpr int kFraction = 20;  // bits that keep the root an integer
    out = TfliteTabulated(b, [&](int64_t stored) -> int64_t {
      const auto x = static_cast<int32_t>(std::max<int64_t>(stored - x_zero, 0));
      if (x == 0) return std::numeric_limits<int8_t>::max();
      const FixedRoot root = InverseRootOf(x);
      const int32_t y = MultiplyFixed(int32_t{1}, root.multiplier, root.shift + kFraction);
      return MultiplyFixed(y, factor.multiplier, factor.shift - kFraction) + zero;
    });
  } else {
    return Unsupported("of ", b.dtype());
  }
  if (out.ok()) ONCILLA_TRY(TfliteRequireNotNegative(b, 0));
  return out;
}

Result<Values> LowerQuantisedAbs(TfliteLowering& b) {
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  const bool rescaled = ScaleOf(from) != ScaleOf(to);
  ONCILLA_ASSIGN(const TfliteFixedPoint factor,
                 TfliteFixedPointOf(double{ScaleOf(from) / ScaleOf(to)}));
  return TfliteTabulated(b, [&](int64_t stored) -> int64_t {
    const auto size = static_cast<int32_t>(std::abs(stored - x_zero));
    return (rescaled ? MultiplyFixed(size, factor.multiplier, factor.shift) : size) + zero;
  });
}

Result<Values> LowerQuantisedLeakyRelu(TfliteLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float(0));
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  // The sign of alpha is handled separately, since fixed-point factors are positive.
  const float slope = ScaleOf(from) * std::abs(alpha) / ScaleOf(to);
  ONCILLA_ASSIGN(const TfliteFixedPoint below, TfliteFixedPointOf(double{slope}));
  ONCILLA_ASSIGN(const TfliteFixedPoint above,
                 TfliteFixedPointOf(double{ScaleOf(from) / ScaleOf(to)}));
  return TfliteTabulated(b, [&](int64_t stored) -> int64_t {
    const auto x = static_cast<int32_t>(stored - x_zero);
    if (x >= 0) return MultiplyFixed(x, above.multiplier, above.shift) + zero;
    const int64_t y = MultiplyFixed(x, below.multiplier, below.shift);
    return (alpha < 0 ? -y : y) + zero;
  });
}

// x * relu6(x + 3) / 6 in 16 bits: x in units of 1/128 of its step, the second factor in units of 3
// / 32768.
Result<Values> LowerQuantisedHardSwish(TfliteLowering& b) {
  if (b.dtype() == DType::kI16) return Unsupported("of ", b.dtype());
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  const float fine = (1.0f / 128.0f) * ScaleOf(from);
  ONCILLA_ASSIGN(const TfliteFixedPoint out, TfliteFixedPointOf(double{fine / ScaleOf(to)}));
  ONCILLA_ASSIGN(const TfliteFixedPoint gate, TfliteFixedPointOf(double{fine / (3.0f / 32768.0f)}));
  if (out.shift > 0) {
    return Unsupported("from a scale of ", ScaleOf(from), " to one of ", ScaleOf(to));
  }
  const int16_t to_output = Narrowed(out.multiplier), to_gate = Narrowed(gate.multiplier);
  return TfliteTabulated(b, [&](int64_t stored) -> int64_t {
    const auto x = static_cast<int16_t>(std::clamp<int64_t>(stored - x_zero, -255, 255) * 128);
    int16_t y = x;
    if (gate.shift > 0) y = ShiftedLeft(y, gate.shift - 1);
    y = RoundedHigh(y, to_gate);
    if (gate.shift > 0) y = ShiftedLeft(y, 1);
    if (gate.shift < 0) y = static_cast<int16_t>(DivideByPowerOfTwo(y, -gate.shift));
    y = static_cast<int16_t>((y + (1 << 15)) >> 1);
    return DivideByPowerOfTwo(CutHigh(y, RoundedHigh(x, to_output)), -out.shift) + zero;
  });
}

Result<Values> LowerQuantisedRange(TfliteLowering& b, float least, float most) {
  ONCILLA_TRY(CheckTfliteIntegers(b, 1));
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.output_type()));
  const auto zero = static_cast<double>(TfliteZeroOf(to));
  const auto stored = [&](float real) {
    return std::clamp(zero + double{std::round(real / ScaleOf(to))}, range.least, range.most);
  };
  RequantizeAttrs attrs;
  attrs.x_zero = TfliteZeroOf(from);
  attrs.least = static_cast<int64_t>(stored(least));
  attrs.most = static_cast<int64_t>(stored(most));
  const float factor = ScaleOf(from) / ScaleOf(to);
  return One(
      TfliteFixed(b, b.in(0), {double{factor}}, attrs, b.output_type(), TfliteZeroOf(to), ""));
}

}  // namespace oncilla
