// Softmax and L2 normalisation of quantised integers.
#include <algorithm>
#include <cmath>

#include "engine/import/tflite/ops/quantize_lookup.h"
#include "engine/import/tflite/ops/quantize_ops.h"

namespace oncilla {
namespace {

// Checks that x and the output have a single scale each, and types that the op supports.
Status CheckTypes(const TfliteLowering& b) {
  for (const TfliteTensor* tensor : {&b.tensor(0), &b.output_tensor()}) {
    if (!IsQuantised(*tensor)) return Unsupported("of ", b.dtype(), " to ", b.output_type());
    ONCILLA_TRY(CheckTfliteScales(*tensor));
    if (tensor->quantization.scale.size() != 1) {
      return Unsupported("with a scale for each channel of a tensor");
    }
  }
  return {};
}

// LiteRT's kernels are written for one output scale. The zero point must match it exactly, the
// scale up to `slack`.
Status RequireOutput(const TfliteTensor& to, float scale, int64_t zero, float slack) {
  const float given = to.quantization.scale[0];
  if (std::abs(given - scale) <= slack * scale && TfliteZeroOf(to) == zero) return {};
  return Unsupported("to the scale ", given, " and zero point ", TfliteZeroOf(to), "; ", scale,
                     " and ", zero, " are");
}

Result<ValueId> Number(TfliteLowering& b, DType dtype, double value) {
  return b.Scalar(dtype, value);
}

// Converts integers held in floats to the output's type.
Result<Values> Stored(TfliteLowering& b, ValueId steps) {
  ONCILLA_ASSIGN(const TfliteIntegers range, TfliteIntegersOf(b.output_type()));
  ONCILLA_ASSIGN(const ValueId zero,
                 Number(b, DType::kF32, static_cast<double>(TfliteZeroOf(b.output_tensor()))));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {steps, zero}, "moved"));
  ONCILLA_ASSIGN(const ValueId least, Number(b, DType::kF32, range.least));
  ONCILLA_ASSIGN(const ValueId most, Number(b, DType::kF32, range.most));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {moved, least, most}, "cut"));
  return One(b.Cast(cut, b.output_type(), ""));
}

// x in float, times `factor`. A softmax does not depend on the zero point.
Result<ValueId> Scaled(TfliteLowering& b, double factor) {
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(0), DType::kF32, "wide"));
  ONCILLA_ASSIGN(const ValueId scale, Number(b, DType::kF32, factor));
  return b.Add("Mul", {}, {wide, scale}, "scaled");
}

// A 16-bit softmax as LiteRT computes it: the exponentials come from a table of the distance to the
// row's maximum, and the reciprocal of their sum from another table, scaled by the sum's number of
// bits.
Result<Values> AddWideSoftmax(TfliteLowering& b, float beta) {
  constexpr double kRange = 65535;
  const TfliteTensor &from = b.tensor(0), &to = b.output_tensor();
  ONCILLA_TRY(RequireOutput(to, 1.0f / 32768, 0, 0.001f));
  if (TfliteZeroOf(from) != 0) return Unsupported("of a zero point ", TfliteZeroOf(from));
  // LiteRT calls this sampler with numbers rounded to float, and the other one with doubles.
  const auto exponentials = TfliteSamples<double>(10.0 / kRange, 32767, 2.0 / kRange, 0,
                                                  [](double x) { return std::exp(x); });
  const auto reciprocals = TfliteSamples<double>(1.0 / kRange, -32768, 2.0 / kRange, 0,
                                                 [](double x) { return 1.0 / (1.0 + x); });
  const double factor = double{from.quantization.scale[0] * beta} / (10.0 / kRange);
  ONCILLA_ASSIGN(const TfliteFixedPoint point, TfliteFixedPointOf(factor));
  ONCILLA_ASSIGN(Tensor table, Tensor::Allocate({DType::kI32, {65536}}));
  for (int32_t below = 0; below < 65536; ++below) {
    const int64_t x = int64_t{MultiplyFixed(-below, point.multiplier, point.shift)} + 32767;
    table.MutableAs<int32_t>()[static_cast<size_t>(below)] = static_cast<int32_t>(
        TfliteInterpolated(exponentials, std::clamp<int64_t>(x, -32768, 32767)));
  }
  ONCILLA_ASSIGN(Tensor inverse, TfliteTableOf(DType::kI16, DType::kI16, [&](int64_t x) {
                   return TfliteInterpolated(reciprocals, x);
                 }));
  const ReduceAttrs along = {.keep_dims = true};
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kI32, "wide"));
  ONCILLA_ASSIGN(const ValueId top, b.Add("ReduceMax", along, {x, b.Ints({-1})}, "top"));
  ONCILLA_ASSIGN(const ValueId below, b.Add("Sub", {}, {top, x}, "below"));
  ONCILLA_ASSIGN(const ValueId exps, b.Add(GatherAttrs{.negative_indices = false},
                                           {b.Constant(std::move(table)), below}, "exps"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", along, {exps, b.Ints({-1})}, "sum"));
  // The number of bits of the sum.
  std::vector<int32_t> powers;
  for (int i = 0; i < 31; ++i) powers.push_back(int32_t{1} << i);
  const ValueId sorted = b.Constant(Tensor::Of<int32_t>(DType::kI32, {31}, powers));
  ONCILLA_ASSIGN(const ValueId places, b.Add(SearchSortedAttrs{.right = true, .to = DType::kI32},
                                             {sorted, sum}, "places"));
  ONCILLA_ASSIGN(const ValueId bits, b.Cast(places, DType::kI64, "bits"));
  ONCILLA_ASSIGN(const ValueId total, b.Cast(sum, DType::kI64, "total"));
  const auto number = [&](double value) { return Number(b, DType::kI64, value); };
  ONCILLA_ASSIGN(const ValueId whole, number(31));
  ONCILLA_ASSIGN(const ValueId one, number(1));
  ONCILLA_ASSIGN(const ValueId two, number(2));
  ONCILLA_ASSIGN(const ValueId half, number(1 << 13));
  ONCILLA_ASSIGN(const ValueId drop, number(14));
  ONCILLA_ASSIGN(const ValueId offset, number((1 << 15) + (1 << 16)));
  ONCILLA_ASSIGN(const ValueId least, number(-32768));
  ONCILLA_ASSIGN(const ValueId most, number(32767));
  ONCILLA_ASSIGN(const ValueId room, b.Add("Sub", {}, {whole, bits}, "room"));
  ONCILLA_ASSIGN(const ValueId high, b.Add("ShiftLeft", {}, {total, room}, "high"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Add", {}, {high, half}, "above"));
  ONCILLA_ASSIGN(const ValueId shifted, b.Add("ShiftRight", {}, {above, drop}, "shifted"));
  ONCILLA_ASSIGN(const ValueId centred, b.Add("Sub", {}, {shifted, offset}, "centred"));
  ONCILLA_ASSIGN(const ValueId inside, b.Add("Clip", {}, {centred, least, most}, "inside"));
  ONCILLA_ASSIGN(const ValueId narrow, b.Cast(inside, DType::kI16, "narrow"));
  ONCILLA_ASSIGN(const ValueId per, TfliteLookup(b, narrow, std::move(inverse), "per"));
  ONCILLA_ASSIGN(const ValueId scale, b.Cast(per, DType::kI64, "scale"));
  ONCILLA_ASSIGN(const ValueId parts, b.Cast(exps, DType::kI64, "parts"));
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {parts, scale}, "product"));
  ONCILLA_ASSIGN(const ValueId down, b.Add("Sub", {}, {bits, one}, "down"));
  ONCILLA_ASSIGN(const ValueId less, b.Add("Sub", {}, {bits, two}, "less"));
  ONCILLA_ASSIGN(const ValueId round, b.Add("ShiftLeft", {}, {one, less}, "round"));
  ONCILLA_ASSIGN(const ValueId rounded, b.Add("Add", {}, {product, round}, "rounded"));
  ONCILLA_ASSIGN(const ValueId result, b.Add("ShiftRight", {}, {rounded, down}, "result"));
  ONCILLA_ASSIGN(const ValueId none, number(0));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {result, none, most}, "cut"));
  return One(b.Cast(cut, DType::kI16, ""));
}

}  // namespace

Result<Values> LowerQuantisedSoftmax(TfliteLowering& b) {
  ONCILLA_ASSIGN(const float beta, b.Float(0));
  ONCILLA_TRY(CheckTypes(b));
  const TfliteTensor& to = b.output_tensor();
  const DType type = b.dtype(), output = b.output_type();
  if (type == DType::kI16 && output == DType::kI16) return AddWideSoftmax(b, beta);
  const bool bytes = type == DType::kI8 || type == DType::kU8;
  if (!bytes || (output != type && output != DType::kI16)) {
    return Unsupported("of ", type, " to ", output);
  }
  if (output == DType::kI8) ONCILLA_TRY(RequireOutput(to, 1.0f / 256, -128, 0.001f));
  if (output == DType::kU8 && TfliteZeroOf(to) != 0) {
    return Unsupported("to the zero point ", TfliteZeroOf(to));
  }
  const float factor = b.tensor(0).quantization.scale[0] * beta;
  ONCILLA_ASSIGN(const ValueId x, Scaled(b, double{factor}));
  ONCILLA_ASSIGN(const ValueId y, b.Add(SoftmaxAttrs(), {x}, "real"));
  ONCILLA_ASSIGN(const ValueId per,
                 Number(b, DType::kF32, double{1.0f / to.quantization.scale[0]}));
  ONCILLA_ASSIGN(const ValueId half, Number(b, DType::kF32, 0.5));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Mul", {}, {y, per}, "steps"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Add", {}, {steps, half}, "above"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Floor", {}, {above}, "whole"));
  return Stored(b, whole);
}

Result<Values> LowerQuantisedLogSoftmax(TfliteLowering& b) {
  ONCILLA_TRY(CheckTypes(b));
  const DType type = b.output_type();
  if ((type != DType::kI8 && type != DType::kU8) || b.dtype() != type) {
    return Unsupported("of ", b.dtype(), " to ", type);
  }
  ONCILLA_TRY(RequireOutput(b.output_tensor(), 16.0f / 256, type == DType::kI8 ? 127 : 255, 0));
  ONCILLA_ASSIGN(const ValueId x, Scaled(b, double{b.tensor(0).quantization.scale[0]}));
  ONCILLA_ASSIGN(const ValueId y, b.Add(SoftmaxAttrs{.log = true}, {x}, "real"));
  ONCILLA_ASSIGN(const ValueId per, Number(b, DType::kF32, 16));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Mul", {}, {y, per}, "steps"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Round", {}, {steps}, "whole"));
  return Stored(b, whole);
}

// A vector of zeros remains a vector of zeros.
Result<Values> LowerQuantisedL2Normalization(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  if (activation != 0) return Unsupported("an activation of quantised numbers");
  ONCILLA_TRY(CheckTfliteBytes(b, 1));
  ONCILLA_TRY(
      RequireOutput(b.output_tensor(), 1.0f / 128, b.output_type() == DType::kI8 ? 0 : 128, 0));
  ONCILLA_ASSIGN(const ValueId x, TfliteMoved(b, 0));
  ONCILLA_ASSIGN(const ValueId squares, b.Add("Mul", {}, {x, x}, "squares"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true},
                                          {squares, b.Ints({-1})}, "sum"));
  ONCILLA_ASSIGN(const ValueId one, Number(b, DType::kI32, 1));
  ONCILLA_ASSIGN(const ValueId at_least, b.Add("Max", {}, {sum, one}, "at_least"));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(at_least, DType::kF32, "real"));
  ONCILLA_ASSIGN(const ValueId norm, b.Add("Sqrt", {}, {real}, "norm"));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(x, DType::kF32, "numbers"));
  ONCILLA_ASSIGN(const ValueId per, Number(b, DType::kF32, 128));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {wide, per}, "scaled"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Div", {}, {scaled, norm}, "steps"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("Round", {}, {y}, "whole"));
  return Stored(b, whole);
}

}  // namespace oncilla
