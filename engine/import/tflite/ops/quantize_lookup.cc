// Tables of functions of integers, and the nodes that look values up in them.
#include "engine/import/tflite/ops/quantize_lookup.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/tensor/dispatch.h"

namespace oncilla {
namespace {

// Converts a float to an integer, clipped to a range far beyond every use. NaN becomes zero.
int64_t Whole(double value) {
  constexpr double kMost = 4294967296.0;
  return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -kMost, kMost));
}

// As in LiteRT, the real numbers of bytes are computed in float.
TfliteStored OfReals(const TfliteTensor& from, const TfliteTensor& to,
                     const std::function<float(float)>& f) {
  const float x_scale = from.quantization.scale[0], inverse = 1.0f / to.quantization.scale[0];
  const int64_t x_zero = TfliteZeroOf(from), zero = TfliteZeroOf(to);
  return [=](int64_t stored) {
    const float y = f(x_scale * static_cast<float>(stored - x_zero));
    return Whole(double{std::round(y * inverse)}) + zero;
  };
}

Status CheckPair(const TfliteLowering& b) {
  const DType type = b.dtype();
  const bool known = type == DType::kU8 || type == DType::kI8 || type == DType::kI16;
  if (!known || b.output_type() != type || !IsQuantised(b.tensor(0)) ||
      !IsQuantised(b.output_tensor())) {
    return Unsupported("arithmetic on quantised tensors (", b.QuantisedTypes(), ")");
  }
  for (const TfliteTensor* tensor : {&b.tensor(0), &b.output_tensor()}) {
    ONCILLA_TRY(CheckTfliteScales(*tensor));
    if (tensor->quantization.scale.size() != 1) {
      return Unsupported("with a scale for each channel of a tensor");
    }
    if (type == DType::kI16 && TfliteZeroOf(*tensor) != 0) {
      return Unsupported("integers of 16 bits with the zero point ", TfliteZeroOf(*tensor));
    }
  }
  return {};
}

// Fails the run if any element of `good` is false.
Status Require(TfliteLowering& b, ValueId good, std::string_view text) {
  ONCILLA_ASSIGN(const ValueId all, b.Add("ReduceAll", {}, {good}, "all"));
  const ValueId message = b.Constant(Tensor::Strings({}, {std::string(text)}));
  return b.AddAll(AssertAttrs{}, {all, message}, "check").status();
}

}  // namespace

Result<Tensor> TfliteTableOf(DType from, DType to, const TfliteStored& f) {
  ONCILLA_ASSIGN(const TfliteIntegers x, TfliteIntegersOf(from));
  ONCILLA_ASSIGN(const TfliteIntegers y, TfliteIntegersOf(to));
  const auto least = static_cast<int64_t>(x.least), most = static_cast<int64_t>(x.most);
  const int64_t count = most - least + 1;
  ONCILLA_ASSIGN(Tensor table, Tensor::Allocate({to, {count}}));
  DispatchDType(to, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4) {
      const std::span<T> cells = table.MutableAs<T>();
      for (int64_t stored = least; stored <= most; ++stored) {
        const int64_t value =
            std::clamp(f(stored), static_cast<int64_t>(y.least), static_cast<int64_t>(y.most));
        cells[static_cast<size_t>(stored & (count - 1))] = static_cast<T>(value);
      }
    }
  });
  return table;
}

Result<ValueId> TfliteLookup(TfliteLowering& b, ValueId x, Tensor table, std::string_view role) {
  const DType type = b.fact(x).dtype;
  const bool wide = BitsOf(type) == 16;
  if (table.elements() != (wide ? 65536 : 256)) return Internal("a table of ", table.elements());
  if (!wide) return b.Add("ByteTable", {}, {x, b.Constant(std::move(table))}, role);
  ValueId bits = x;
  const std::string prefix = role.empty() ? "" : StrCat(role, "_");
  if (IsSigned(type)) {
    ONCILLA_ASSIGN(bits, b.Add(BitcastAttrs{.to = DType::kU16}, {x}, prefix + "bits"));
  }
  return b.Add(GatherAttrs{.negative_indices = false}, {b.Constant(std::move(table)), bits}, role);
}

Result<Values> TfliteTabulated(TfliteLowering& b, const TfliteStored& f) {
  ONCILLA_TRY(CheckPair(b));
  ONCILLA_ASSIGN(Tensor table, TfliteTableOf(b.dtype(), b.output_type(), f));
  return One(TfliteLookup(b, b.in(0), std::move(table), ""));
}

Result<Values> TfliteTabulatedReal(TfliteLowering& b, const std::function<float(float)>& f) {
  ONCILLA_TRY(CheckPair(b));
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  if (b.dtype() != DType::kI16) return TfliteTabulated(b, OfReals(from, to, f));
  const auto samples =
      TfliteSamples<float>(from.quantization.scale[0], 0, to.quantization.scale[0], 0, f);
  return TfliteTabulated(b, [&](int64_t x) { return TfliteInterpolated(samples, x); });
}

template <class Real>
std::vector<int16_t> TfliteSamples(Real x_scale, int32_t x_zero, Real scale, int32_t zero,
                                   const std::function<Real(Real)>& f) {
  constexpr int32_t kLeast = std::numeric_limits<int16_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int16_t>::max();
  constexpr int kSteps = 512;
  const Real x_least = x_scale * static_cast<Real>(kLeast - x_zero);
  const Real x_most = x_scale * static_cast<Real>(kMost - x_zero);
  const Real step = (x_most - x_least) / kSteps, half = step / 2;
  const Real least = scale * static_cast<Real>(kLeast - zero);
  const Real most = scale * static_cast<Real>(kMost - zero);
  const Real per = static_cast<Real>(kMost - kLeast + 1) / (most - least);
  const auto stored = [](Real value) {
    return static_cast<int16_t>(std::clamp<int64_t>(Whole(double{value}), kLeast, kMost));
  };
  std::vector<int16_t> samples;
  for (int i = 0; i < kSteps; ++i) {
    const Real here = f(x_least + static_cast<Real>(i) * step);
    const Real middle = f(x_least + static_cast<Real>(i) * step + half);
    const Real next = f(x_least + static_cast<Real>(i + 1) * step);
    const Real sample = std::round(here * per);
    const Real between = std::round((next * per + sample) / 2);
    const Real missed = std::round((between - std::round(middle * per)) / 2);
    samples.push_back(stored(sample - missed));
  }
  samples.push_back(stored(std::round(f(x_most) * per)));
  return samples;
}
template std::vector<int16_t> TfliteSamples<float>(float, int32_t, float, int32_t,
                                                   const std::function<float(float)>&);
template std::vector<int16_t> TfliteSamples<double>(double, int32_t, double, int32_t,
                                                    const std::function<double(double)>&);

int64_t TfliteInterpolated(const std::vector<int16_t>& samples, int64_t x) {
  const auto at = static_cast<size_t>(256 + (x >> 7));
  const int64_t base = samples[at];
  // The slope is stored in 16 bits, which wrap around.
  const auto slope = static_cast<int16_t>(static_cast<uint16_t>(samples[at + 1] - base));
  return static_cast<int16_t>(
      static_cast<uint16_t>(base + ((int64_t{slope} * (x & 0x7F) + 64) >> 7)));
}

Status TfliteRequireNotNegative(TfliteLowering& b, size_t i) {
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype(i)));
  const auto zero = static_cast<double>(TfliteZeroOf(b.tensor(i)));
  if (zero <= range.least) return {};
  if (zero > range.most) return DataLoss("a zero point is ", zero);
  ONCILLA_ASSIGN(const ValueId point, b.Scalar(b.dtype(i), zero));
  ONCILLA_ASSIGN(const ValueId good, b.Add("GreaterEqual", {}, {b.in(i), point}, "good"));
  return Require(b, good, "an element is below zero");
}

Status TfliteRequireNotZero(TfliteLowering& b, size_t i) {
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.dtype(i)));
  const auto zero = static_cast<double>(TfliteZeroOf(b.tensor(i)));
  if (zero < range.least || zero > range.most) return {};
  ONCILLA_ASSIGN(const ValueId point, b.Scalar(b.dtype(i), zero));
  ONCILLA_ASSIGN(const ValueId good, b.Add("NotEqual", {}, {b.in(i), point}, "good"));
  return Require(b, good, "a divisor is zero");
}

}  // namespace oncilla
