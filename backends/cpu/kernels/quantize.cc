// Quantisation on the CPU: by scale and zero point (ONNX), and by ranges with TensorFlow's order of
// rounding.
#include "engine/ops/math/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "engine/tensor/dispatch.h"
#include "engine/tensor/numbers.h"

namespace oncilla::cpu {
namespace {

// x as [outer, places, inner] around an axis; without an axis there is one place.
struct Slices {
  int64_t outer = 1, places = 1, inner = 1;

  Slices(const Shape& shape, int64_t axis) {
    if (axis < 0) {
      inner = shape.elements();
      return;
    }
    const auto at = static_cast<int>(axis);
    outer = shape.Product(0, at);
    places = shape[at];
    inner = shape.Product(at + 1, shape.rank());
  }
  // Calls fn(begin, end) for each run of elements of a place.
  template <class F>
  void Each(int64_t place, F&& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * places + place) * inner;
      fn(begin, begin + inner);
    }
  }
};

template <class T>
T Cut(double x) {
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::lowest());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  if (std::isnan(x)) return 0;
  return static_cast<T>(std::clamp(x, kLow, kHigh));
}

// QuantizeRange for one range: one tensor, or one slice of it.
template <class T>
struct Quantizer {
  static constexpr float kLow = static_cast<float>(std::numeric_limits<T>::lowest());
  static constexpr float kHigh = static_cast<float>(std::numeric_limits<T>::max());
  const QuantizeRangeAttrs& attrs;
  float least, most;
  float factor = 1;
  double scale = 1, first = 0;

  // Widens the given range, so that it contains 0 and is not empty, to the range that is stored,
  // and computes the factor from real numbers to steps of T.
  Quantizer(const QuantizeRangeAttrs& a, float low, float high) : attrs(a) {
    least = std::min(0.0f, low);
    const float epsilon = std::max(1.0f, std::max(std::abs(low), std::abs(high))) *
                          static_cast<float>(attrs.least_range);
    most = std::max(0.0f, std::max(high, least + epsilon));
    if (attrs.mode == "scaled") {
      const float lowest = kLow + (attrs.narrow ? 1.0f : 0.0f);
      constexpr float kNone = std::numeric_limits<float>::max();
      const float by_least = lowest * least > 0 ? lowest / least : kNone;
      const float by_most = kHigh * most > 0 ? kHigh / most : kNone;
      factor = std::min(by_least, by_most);
      least = lowest / factor;
      most = kHigh / factor;
    } else if (attrs.mode == "min_combined") {
      factor = (kHigh - kLow) / (most - least);
    } else {
      const double steps = std::ldexp(1.0, sizeof(T) * 8);
      const double range =
          (static_cast<double>(most) - static_cast<double>(least)) * (steps / (steps - 1));
      scale = steps / range;
      first = std::round(static_cast<double>(least) * scale);
    }
  }

  T operator()(float x) const {
    if (attrs.mode == "min_first") {
      // The sum is exact near the range of T; beyond, Cut clamps it anyway.
      const double y = std::round(static_cast<double>(x * static_cast<float>(scale)));
      return Cut<T>(y - (first - static_cast<double>(std::numeric_limits<T>::lowest())));
    }
    const float cut = std::max(std::min(x, most), least);
    if (attrs.mode == "scaled") {
      const float y = cut * factor;
      return Cut<T>(static_cast<double>(attrs.half_to_even ? std::nearbyint(y) : std::round(y)));
    }
    const float y = (cut - least) * factor;
    if constexpr (std::is_signed_v<T>) {
      const float half = (kHigh - kLow + 1) / 2.0f;
      return Cut<T>(static_cast<double>(std::round(y - half)));
    }
    return Cut<T>(std::trunc(static_cast<double>(y + 0.5f)));
  }
};

Status QuantizeRange(const QuantizeRangeAttrs& attrs, const Args& args) {
  const Slices slices(args.in(0).shape, attrs.axis);
  Status status;
  DispatchDType(attrs.to, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      for (int64_t p = 0; p < slices.places && status.ok(); ++p) {
        const float low = args.In<float>(1)[p], high = args.In<float>(2)[p];
        if (!(low <= high)) {
          status = InvalidArgument("input_max_range must be larger than input_min_range.");
          return;
        }
        const Quantizer<T> quantizer(attrs, low, high);
        args.Out<float>(1)[p] = quantizer.least;
        args.Out<float>(2)[p] = quantizer.most;
        slices.Each(p, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) args.Out<T>(0)[i] = quantizer(args.In<float>(0)[i]);
        });
      }
    }
  });
  return status;
}

Status DequantizeRange(const DequantizeRangeAttrs& attrs, const Args& args) {
  const Slices slices(args.in(0).shape, attrs.axis);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      constexpr auto kLow = static_cast<float>(std::numeric_limits<T>::lowest());
      constexpr auto kHigh = static_cast<float>(std::numeric_limits<T>::max());
      for (int64_t p = 0; p < slices.places; ++p) {
        const float least = args.In<float>(1)[p], most = args.In<float>(2)[p];
        float scale = (most - least) / (kHigh - kLow), offset = 0, before = 0;
        if (attrs.mode == "scaled") {
          const float lowest = kLow + (attrs.narrow ? 1.0f : 0.0f);
          scale = kLow == 0 ? most / kHigh : std::max(least / lowest, most / kHigh);
        } else if (attrs.mode == "min_combined") {
          before = std::is_signed_v<T> ? (kHigh - kLow + 1) / 2.0f : 0.0f;
          offset = least;
        }
        const double step = (static_cast<double>(most) - static_cast<double>(least)) /
                            (std::ldexp(1.0, sizeof(T) * 8) - 1);
        const double first = step == 0 ? static_cast<double>(least)
                                       : std::round(static_cast<double>(least) / step) * step;
        const bool min_first = attrs.mode == "min_first";
        slices.Each(p, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T x = args.In<T>(0)[i];
            const double above =
                static_cast<double>(x) - static_cast<double>(std::numeric_limits<T>::lowest());
            args.Out<float>(0)[i] = min_first ? static_cast<float>(first + above * step)
                                              : (static_cast<float>(x) + before) * scale + offset;
          }
        });
      }
    }
  });
  return {};
}

template <class T>
Status Steps(const RoundToStepsAttrs& attrs, const Args& args) {
  const Slices slices(args.in(0).shape, attrs.axis);
  const T* x = args.In<T>(0);
  const bool given = args.has_input(1);
  const auto bits = static_cast<int>(attrs.bits);
  const T lowest = attrs.is_signed ? static_cast<T>(-std::ldexp(1.0, bits - 1)) +
                                         static_cast<T>(attrs.narrow ? 1 : 0)
                                   : T{0};
  const T highest = static_cast<T>(std::ldexp(1.0, attrs.is_signed ? bits - 1 : bits) - 1);
  for (int64_t p = 0; p < slices.places; ++p) {
    T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
    if (given) {
      least = args.In<T>(1)[p];
      most = args.In<T>(2)[p];
      if (!(least <= most)) {
        return InvalidArgument("Invalid range: input_min ", least, " > input_max ", most);
      }
    } else {
      slices.Each(p, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          least = std::min(least, x[i]);
          most = std::max(most, x[i]);
        }
      });
    }
    // Each bound would need a certain step to reach its end of the integers. The coarser of both
    // steps is used, so that both bounds fit; the other bound then follows from the step. A bound
    // needs no step if it or its end is 0, or if their signs differ.
    constexpr T kNone = std::numeric_limits<T>::max();
    const T by_least = lowest * least > 0 ? lowest / least : kNone;
    const T by_most = highest * most > 0 ? highest / most : kNone;
    T scale, back;
    if (by_least < by_most) {
      scale = by_least;
      back = least / lowest;
      most = highest * back;
    } else {
      scale = by_most;
      back = most / highest;
      least = lowest * back;
    }
    slices.Each(p, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T cut = given ? std::max(std::min(x[i], most), least) : x[i];
        const T step = cut * scale;
        args.Out<T>(0)[i] =
            (attrs.half_up ? std::floor(step + T(0.5)) : std::nearbyint(step)) * back;
      }
    });
  }
  return {};
}

Status RoundToSteps(const RoundToStepsAttrs& attrs, const Args& args) {
  return args.in(0).dtype == DType::kF64 ? Steps<double>(attrs, args) : Steps<float>(attrs, args);
}

// A scale or zero point as numbers, and which number each element takes.
struct Parameter {
  std::vector<double> numbers = {0};
  ParameterPlaces at;

  static Result<Parameter> Of(const Args& args, size_t input, int64_t axis, int64_t block_size) {
    Parameter p;
    p.at.inner = args.in(0).elements();
    if (!args.has_input(input)) return p;
    const TensorDesc desc = args.in(input);
    ONCILLA_ASSIGN(p.at, PlacesOf(args.in(0).shape, desc.shape, axis, block_size));
    p.numbers.resize(static_cast<size_t>(desc.elements()));
    LoadNumbers(desc.dtype, args.inputs[input], 0, p.numbers);
    return p;
  }
};

// Steps through the numbers of the elements of x, from one element on.
class ParameterWalk {
 public:
  ParameterWalk(const Parameter& p, int64_t element)
      : p_(p),
        i_(element % p.at.inner),
        j_(element / p.at.inner % p.at.places),
        o_(element / p.at.inner / p.at.places) {
    Find();
  }
  double Next() {
    const double value = p_.numbers[static_cast<size_t>(base_ + i_ * p_.at.steps.inner)];
    if (++i_ == p_.at.inner) {
      i_ = 0;
      if (++j_ == p_.at.places) {
        j_ = 0;
        ++o_;
      }
      Find();
    }
    return value;
  }

 private:
  void Find() {
    const ParameterSteps& s = p_.at.steps;
    base_ = o_ * s.outer + j_ / s.block * s.place;
  }
  const Parameter& p_;
  int64_t i_, j_, o_, base_ = 0;
};

struct LinearParameters {
  Parameter scale, zero;
};
Result<LinearParameters> ReadParameters(const Args& args, int64_t axis, int64_t block_size,
                                        DType stored) {
  LinearParameters p;
  ONCILLA_ASSIGN(p.scale, Parameter::Of(args, 1, axis, block_size));
  ONCILLA_ASSIGN(p.zero, Parameter::Of(args, 2, axis, block_size));
  auto other = [](double v) { return v != 0; };
  if (IsSmallFloat(stored) && std::any_of(p.zero.numbers.begin(), p.zero.numbers.end(), other)) {
    return InvalidArgument("the zero point of ", stored, " must be zero");
  }
  return p;
}

// x / scale in the given precision.
double Quotient(double x, double scale, DType precision) {
  if (precision == DType::kF64) return x / scale;
  if (precision == DType::kF16) {
    return Half(static_cast<float>(Half(static_cast<float>(x))) / Half(static_cast<float>(scale)));
  }
  if (precision == DType::kBF16) {
    return BFloat16(static_cast<float>(BFloat16(static_cast<float>(x))) /
                    BFloat16(static_cast<float>(scale)));
  }
  return static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
}

// The range of an integer type of at most 32 bits.
struct IntegerRange {
  double low, high;
  explicit IntegerRange(DType t) {
    const bool is_signed = IsSigned(t) || t == DType::kI4 || t == DType::kI2;
    high = std::ldexp(1.0, BitsOf(t) - (is_signed ? 1 : 0)) - 1;
    low = is_signed ? -high - 1 : 0;
  }
};

constexpr int64_t kLinearTile = 1024;  // a multiple of the elements that share bytes

// Most models quantise f32 to bytes and back with parameters that are constant over many elements.
// These are loops over such runs, which compilers vectorise.
template <class T>
void QuantizeRun(const float* x, size_t n, float scale, int32_t zero, T* y) {
  const auto low = static_cast<float>(std::numeric_limits<T>::min() - zero);
  const auto high = static_cast<float>(std::numeric_limits<T>::max() - zero);
  for (size_t i = 0; i < n; ++i) {
    const float steps = x[i] / scale;
    const float above = steps > low ? steps : low, cut = above < high ? above : high;
    // Adding and subtracting 1.5 * 2^23, whose last bit stands for one, rounds to the nearest
    // integer, ties to even.
    constexpr float kWhole = 12582912.0f;
    const auto whole = static_cast<int32_t>((cut + kWhole) - kWhole) + zero;
    y[i] = static_cast<T>(steps == steps ? whole : 0);
  }
}
template <class T>
void DequantizeRun(const T* x, size_t n, float scale, int32_t zero, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(int32_t{x[i]} - zero) * scale;
}

// Calls run(begin, count, scale, zero) for all elements, run by run. Returns false, without a call,
// where runs are short.
template <class F>
bool ForRuns(const LinearParameters& p, const Args& args, F&& run) {
  constexpr int64_t kShortest = 16;
  const ParameterPlaces& at = p.scale.at.places == 1 ? p.zero.at : p.scale.at;
  if (p.scale.at.steps.inner != 0 || p.zero.at.steps.inner != 0 || at.inner < kShortest) {
    return false;
  }
  const auto number = [&](const Parameter& q, int64_t outer, int64_t place) {
    const ParameterSteps& s = q.at.steps;
    const bool one = q.numbers.size() == 1;
    return q.numbers[static_cast<size_t>(one ? 0 : outer * s.outer + place / s.block * s.place)];
  };
  ParallelFor(
      args.threads, args.in(0).elements(), 16 * kLinearTile, [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t row = begin / at.inner;
          const int64_t count = std::min(end, (row + 1) * at.inner) - begin;
          const int64_t outer = row / at.places, place = row % at.places;
          run(begin, static_cast<size_t>(count), static_cast<float>(number(p.scale, outer, place)),
              static_cast<int32_t>(number(p.zero, outer, place)));
          begin += count;
        }
      });
  return true;
}

bool QuantizedRuns(const QuantizeLinearAttrs& attrs, const LinearParameters& p, const Args& args) {
  if (args.in(0).dtype != DType::kF32 || attrs.precision != DType::kF32) return false;
  const auto with = [&]<class T>(TypeTag<T>) {
    return ForRuns(p, args, [&](int64_t begin, size_t n, float scale, int32_t zero) {
      QuantizeRun(args.In<float>(0) + begin, n, scale, zero, args.Out<T>(0) + begin);
    });
  };
  if (attrs.to == DType::kU8) return with(TypeTag<uint8_t>{});
  return attrs.to == DType::kI8 && with(TypeTag<int8_t>{});
}

bool DequantizedRuns(const DequantizeLinearAttrs& attrs, const LinearParameters& p,
                     const Args& args) {
  if (attrs.to != DType::kF32) return false;
  const auto with = [&]<class T>(TypeTag<T>) {
    return ForRuns(p, args, [&](int64_t begin, size_t n, float scale, int32_t zero) {
      DequantizeRun(args.In<T>(0) + begin, n, scale, zero, args.Out<float>(0) + begin);
    });
  };
  if (args.in(0).dtype == DType::kU8) return with(TypeTag<uint8_t>{});
  return args.in(0).dtype == DType::kI8 && with(TypeTag<int8_t>{});
}

Status QuantizeLinear(const QuantizeLinearAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const LinearParameters p,
                 ReadParameters(args, attrs.axis, attrs.block_size, attrs.to));
  if (QuantizedRuns(attrs, p, args)) return {};
  const TensorDesc x = args.in(0);
  const SmallRounding rounding{attrs.saturate};
  const bool floats = IsSmallFloat(attrs.to);
  const IntegerRange range(attrs.to);
  ParallelFor(args.threads, x.elements(), 16 * kLinearTile, [&](int64_t begin, int64_t end) {
    double tile[kLinearTile];
    ParameterWalk scale(p.scale, begin), zero(p.zero, begin);
    for (; begin < end; begin += kLinearTile) {
      const auto n = static_cast<size_t>(std::min(kLinearTile, end - begin));
      LoadNumbers(x.dtype, args.inputs[0], begin, {tile, n});
      for (size_t i = 0; i < n; ++i) {
        const double steps = Quotient(tile[i], scale.Next(), attrs.precision);
        const double point = zero.Next();
        if (floats) {
          tile[i] = steps;
        } else {
          const double y = std::nearbyint(steps) + point;
          tile[i] = std::isnan(y) ? 0 : std::clamp(y, range.low, range.high);
        }
      }
      StoreNumbers(attrs.to, {tile, n}, rounding, args.outputs[0], begin);
    }
  });
  return {};
}

Status DequantizeLinear(const DequantizeLinearAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0);
  ONCILLA_ASSIGN(const LinearParameters p,
                 ReadParameters(args, attrs.axis, attrs.block_size, x.dtype));
  if (DequantizedRuns(attrs, p, args)) return {};
  ParallelFor(args.threads, x.elements(), 16 * kLinearTile, [&](int64_t begin, int64_t end) {
    double tile[kLinearTile];
    ParameterWalk scale(p.scale, begin), zero(p.zero, begin);
    for (; begin < end; begin += kLinearTile) {
      const auto n = static_cast<size_t>(std::min(kLinearTile, end - begin));
      LoadNumbers(x.dtype, args.inputs[0], begin, {tile, n});
      for (size_t i = 0; i < n; ++i) {
        // The difference is exact in double.
        const auto steps = static_cast<float>(tile[i] - zero.Next());
        tile[i] = static_cast<double>(steps * static_cast<float>(scale.Next()));
      }
      StoreNumbers(attrs.to, {tile, n}, {}, args.outputs[0], begin);
    }
  });
  return {};
}

Status CastStored(const CastStoredAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0);
  SmallRounding rounding{attrs.saturate};
  if (attrs.round == "down") rounding.powers = PowerRounding::kDown;
  if (attrs.round == "nearest") rounding.powers = PowerRounding::kNearest;
  const auto convert = [&]<class Wide>(TypeTag<Wide>, auto&& load, auto&& store) {
    ParallelFor(args.threads, x.elements(), 16 * kLinearTile, [&](int64_t begin, int64_t end) {
      Wide tile[kLinearTile];
      for (; begin < end; begin += kLinearTile) {
        const std::span<Wide> part{tile, static_cast<size_t>(std::min(kLinearTile, end - begin))};
        load(x.dtype, args.inputs[0], begin, part);
        store(attrs.to, part, rounding, args.outputs[0], begin);
      }
    });
  };
  if (HoldsInts(x.dtype) && HoldsInts(attrs.to)) {
    convert(TypeTag<int64_t>{}, LoadInts, StoreInts);
  } else {
    convert(TypeTag<double>{}, LoadNumbers, StoreNumbers);
  }
  return {};
}

Status ByteTable(const NoAttrs&, const Args& args) {
  DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
    const uint8_t* x = args.In<uint8_t>(0);
    const T* table = args.In<T>(1);
    T* y = args.Out<T>(0);
    ParallelFor(args.threads, args.in(0).elements(), 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
    });
  });
  return {};
}

// The row with `stored` set: all types are read and written as they are stored.
constexpr KernelRow AsStored(KernelRow row) {
  row.stored = true;
  return row;
}

constexpr DTypeSet kQuantized =
    Set(DType::kI8) | Set(DType::kU8) | Set(DType::kI16) | Set(DType::kU16) | Set(DType::kI32);

const KernelRow kRows[] = {
    Row<ByteTable>("ByteTable", Set(DType::kU8) | Set(DType::kI8), &MakeFastByteTable),
    AsStored(Row<CastStored>("CastStored", kFixedSize | kSmall)),
    AsStored(Row<QuantizeLinear>("QuantizeLinear", kNumbers, &MakeFastQuantizeLinear)),
    AsStored(
        Row<DequantizeLinear>("DequantizeLinear", kIntegers | kSmall, &MakeFastDequantizeLinear)),
    Row<QuantizeRange>("QuantizeRange", Set(DType::kF32)),
    Row<DequantizeRange>("DequantizeRange", kQuantized),
    Row<RoundToSteps>("RoundToSteps", Set(DType::kF32) | Set(DType::kF64)),
};

}  // namespace

std::span<const KernelRow> QuantizeKernels() { return kRows; }

}  // namespace oncilla::cpu
