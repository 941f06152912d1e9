// TensorFlow's uniform quantisation: a scale and a zero point for a tensor, or for each index along
// an axis. The formulas are those of its CPU kernels, to the bit.
#include <algorithm>
#include <cmath>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/ops/formula.h"
#include "engine/import/tf/ops/quantize_sums.h"

namespace oncilla {
namespace {

Result<DType> UniformType(const TfLowering& b, std::string_view attr) {
  ONCILLA_ASSIGN(const int64_t number, b.attrs().TypeNumber(attr));
  if (number == 11) return DType::kI8;
  if (number == 12) return DType::kU8;
  if (number == 13) return DType::kI32;
  return Unsupported("with ", attr, " of type ", number);
}

// Scales or zero points reshaped to broadcast to input 0 along `axis`; if that is -1, there is one
// for the whole tensor.
Result<ValueId> AlongAxis(TfLowering& b, ValueId values, int64_t axis, const std::string& role) {
  const PartialShape& shape = b.fact(values).shape;
  if (axis < -1 || axis >= kMaxRank) return InvalidArgument("quantization_axis is ", axis);
  if (shape.ranked() && shape.rank() != (axis < 0 ? 0 : 1)) {
    return InvalidArgument(role, " have the shape ", shape, " for quantization_axis ", axis);
  }
  if (axis < 0) return values;
  const Result<int> rank = b.Rank(0, "the input");
  if (!rank.ok() && !b.RanksStayOpen()) return rank.status();
  if (rank.ok() && axis >= *rank) {
    return InvalidArgument("quantization_axis is ", axis, " for ", *rank, " axes");
  }
  if (rank.ok()) {
    std::vector<int64_t> behind;
    for (int64_t i = 1; i < *rank - axis; ++i) behind.push_back(i);
    return b.Unsqueeze(values, std::move(behind), role);
  }
  TfFormula f(b);
  const ValueId own = f(RankAttrs{.to = DType::kI64}, {b.in(0)});
  const ValueId place = f.Number(DType::kI64, static_cast<double>(axis + 1));
  const ValueId more = f("Sub", {own, place});
  ONCILLA_TRY(f.status());
  return WithTrailingAxes(b, values, more, role);
}

struct Range {
  double least, most;
};
Result<Range> RangeOf(const TfLowering& b, const std::string& prefix) {
  ONCILLA_ASSIGN(const int64_t least, b.attrs().Int(prefix + "quantization_min_val"));
  ONCILLA_ASSIGN(const int64_t most, b.attrs().Int(prefix + "quantization_max_val"));
  return Range{static_cast<double>(least), static_cast<double>(most)};
}

// Whole numbers (i64) with the zero points added, cut to the range, as integers of type `to`.
Result<Values> Stored(TfFormula& f, ValueId whole, ValueId zeros, const Range& range, DType to) {
  const ValueId moved = f("Add", {whole, f.Cast(zeros, DType::kI64)});
  const ValueId cut =
      f("Clip", {moved, f.Number(DType::kI64, range.least), f.Number(DType::kI64, range.most)});
  return f.Last(CastAttrs{to}, {cut});
}

// Fixed-point factors of a requantisation, one for each pair of scales.
struct Factors {
  std::vector<int64_t> multiplier, half, power;

  // scale is positive and finite.
  void Add(double scale) {
    int shift = 0;
    auto fixed = std::llround(std::frexp(scale, &shift) * 2147483648.0);
    if (fixed == int64_t{1} << 31) {
      fixed /= 2;
      ++shift;
    }
    if (shift < -31) shift = 0, fixed = 0;
    if (shift > 30) shift = 30, fixed = (int64_t{1} << 31) - 1;
    multiplier.push_back(fixed);
    half.push_back(int64_t{1} << (30 - shift));
    power.push_back(int64_t{1} << (31 - shift));
  }
};

Result<std::vector<double>> KnownScales(const TfLowering& b, size_t input) {
  if (!b.in_fact(input).has_value()) {
    return Unsupported("scales are computed while running; they must be constants");
  }
  ONCILLA_ASSIGN(std::vector<double> scales, ToDoubles(b.in_fact(input).value));
  for (const double scale : scales) {
    if (!(scale > 0) || !std::isfinite(scale)) {
      return InvalidArgument("input/output scales elements must be all positive.");
    }
  }
  return scales;
}

}  // namespace

// Inputs: x, scales, zero points.
Result<Values> LowerUniformQuantize(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, UniformType(b, "Tout"));
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("quantization_axis"));
  ONCILLA_ASSIGN(const Range range, RangeOf(b, ""));
  ONCILLA_ASSIGN(const ValueId scales, AlongAxis(b, b.in(1), axis, "scales"));
  ONCILLA_ASSIGN(const ValueId zeros, AlongAxis(b, b.in(2), axis, "zero_points"));
  TfFormula f(b);
  const ValueId inverse = f("Div", {f.Number(DType::kF32, 1), scales});
  const ValueId steps = f("Mul", {b.in(0), inverse});
  const ValueId floor = f("Floor", {f("Add", {steps, f.Number(DType::kF32, 0.5)})});
  // Values beyond 32 bits are outside every range.
  const ValueId held =
      f("Clip", {floor, f.Number(DType::kF32, -4294967296.0), f.Number(DType::kF32, 4294967296.0)});
  return Stored(f, f.Cast(held, DType::kI64), zeros, range, to);
}

Result<Values> LowerUniformDequantize(TfLowering& b) {
  ONCILLA_TRY(UniformType(b, "Tin").status());
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("quantization_axis"));
  ONCILLA_ASSIGN(const ValueId scales, AlongAxis(b, b.in(1), axis, "scales"));
  ONCILLA_ASSIGN(const ValueId zeros, AlongAxis(b, b.in(2), axis, "zero_points"));
  TfFormula f(b);
  const ValueId moved = f("Sub", {f.Cast(b.in(0), DType::kI32), zeros});
  return f.Last("Mul", {f.Cast(moved, DType::kF32), scales});
}

// Inputs: x, its scales and zero points, and those of the result.
Result<Values> LowerUniformRequantize(TfLowering& b) {
  ONCILLA_TRY(UniformType(b, "Tin").status());
  ONCILLA_ASSIGN(const DType to, UniformType(b, "Tout"));
  if (to != DType::kI8) return Unsupported("to ", to);
  ONCILLA_ASSIGN(const int64_t from_axis, b.attrs().Int("input_quantization_axis"));
  ONCILLA_ASSIGN(const int64_t to_axis, b.attrs().Int("output_quantization_axis"));
  if (from_axis >= 0 && to_axis >= 0 && from_axis != to_axis) {
    return InvalidArgument("the input is quantised along axis ", from_axis,
                           " and the output along ", to_axis);
  }
  ONCILLA_ASSIGN(const Range range, RangeOf(b, "output_"));
  ONCILLA_ASSIGN(const std::vector<double> from, KnownScales(b, 1));
  ONCILLA_ASSIGN(const std::vector<double> onto, KnownScales(b, 3));
  if (from.empty() || onto.empty() ||
      (from.size() != onto.size() && from.size() != 1 && onto.size() != 1)) {
    return InvalidArgument("there are ", from.size(), " and ", onto.size(), " scales");
  }
  const size_t count = std::max(from.size(), onto.size());
  Factors factors;
  for (size_t i = 0; i < count; ++i) {
    factors.Add(from[from.size() == 1 ? 0 : i] / onto[onto.size() == 1 ? 0 : i]);
  }
  const int64_t axis = std::max(from_axis, to_axis);
  const auto along = [&](const std::vector<int64_t>& values, const char* role) -> Result<ValueId> {
    if (axis < 0) return b.Constant(Tensor::Int64s(values).Reshaped({}));
    return AlongAxis(b, b.Ints(values), axis, role);
  };
  ONCILLA_ASSIGN(const ValueId multiplier, along(factors.multiplier, "multiplier"));
  ONCILLA_ASSIGN(const ValueId half, along(factors.half, "half"));
  ONCILLA_ASSIGN(const ValueId power, along(factors.power, "power"));
  ONCILLA_ASSIGN(const ValueId zeros, AlongAxis(b, b.in(2), from_axis, "input_zero_points"));
  ONCILLA_ASSIGN(const ValueId to_zeros, AlongAxis(b, b.in(4), to_axis, "output_zero_points"));
  TfFormula f(b);
  const ValueId moved = f("Sub", {f.Cast(b.in(0), DType::kI64), f.Cast(zeros, DType::kI64)});
  const ValueId product = f("Add", {f("Mul", {moved, multiplier}), half});
  return Stored(f, f("FloorDiv", {product, power}), to_zeros, range, to);
}

}  // namespace oncilla
