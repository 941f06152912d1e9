// TensorFlow's quantisation. Fake quantisation is ordinary arithmetic; quantised types are mapped
// to the integers that carry them.
#include <cmath>

#include "engine/import/tf/ops/quantize_sums.h"
#include "engine/import/tf/ops/window.h"

namespace oncilla {
namespace {

struct Range {
  float scale = 0, least = 0, most = 0;
};

// Shifts the range so that zero is exactly one of the steps.
Range Nudge(float least, float most, float lowest, float highest) {
  Range r;
  r.scale = (most - least) / (highest - lowest);
  const float zero = lowest - least / r.scale;
  const float point = zero < lowest ? lowest : zero > highest ? highest : std::round(zero);
  r.least = (lowest - point) * r.scale;
  r.most = (highest - point) * r.scale;
  return r;
}

Result<ValueId> Number(TfLowering& b, float value) {
  return b.Scalar(DType::kF32, static_cast<double>(value));
}

struct RangeValues {
  ValueId scale, least, most;
};

Result<Values> FakeQuant(TfLowering& b, const RangeValues& r, ValueId empty) {
  ONCILLA_ASSIGN(const ValueId half, Number(b, 0.5f));
  ONCILLA_ASSIGN(const ValueId one, Number(b, 1));
  ONCILLA_ASSIGN(const ValueId inverse, b.Add("Div", {}, {one, r.scale}, "per_step"));
  // The step that represents zero.
  ONCILLA_ASSIGN(ValueId zero, b.Add("Neg", {}, {r.least}, "least_negated"));
  ONCILLA_ASSIGN(zero, b.Add("Mul", {}, {zero, inverse}, "zero_steps"));
  ONCILLA_ASSIGN(zero, b.Add("Add", {}, {zero, half}, "zero_steps_half"));
  ONCILLA_ASSIGN(zero, b.Add("Floor", {}, {zero}, "zero_step"));
  // Rounding counts steps from zero; with many steps this decides ties.
  ONCILLA_ASSIGN(ValueId y, b.Add("Clip", {}, {b.in(0), r.least, r.most}, "cut"));
  ONCILLA_ASSIGN(y, b.Add("Sub", {}, {y, r.least}, "above"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, inverse}, "steps"));
  ONCILLA_ASSIGN(y, b.Add("Sub", {}, {y, zero}, "steps_from_zero"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, half}, "steps_half"));
  ONCILLA_ASSIGN(y, b.Add("Floor", {}, {y}, "whole"));
  if (empty == kNoValue) return One(b.Add("Mul", {}, {y, r.scale}));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, r.scale}, "scaled"));
  ONCILLA_ASSIGN(const ValueId none, Number(b, 0));
  return One(b.Add("Where", {}, {empty, none, y}));
}

struct Levels {
  float lowest = 0, highest = 255;
};

Result<Levels> ReadLevels(const TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t bits, b.attrs().Int("num_bits"));
  ONCILLA_ASSIGN(const bool narrow, b.attrs().Bool("narrow_range"));
  if (bits < 2 || bits > 16) return InvalidArgument("num_bits must be between 2 and 16");
  return Levels{narrow ? 1.0f : 0.0f, static_cast<float>((1 << bits) - 1)};
}

Result<Values> LowerFakeQuantArgs(TfLowering& b) {
  ONCILLA_ASSIGN(const Levels levels, ReadLevels(b));
  ONCILLA_ASSIGN(const float least, b.attrs().Float("min"));
  ONCILLA_ASSIGN(const float most, b.attrs().Float("max"));
  if (!(least < most)) return InvalidArgument("min has to be smaller than max");
  const Range range = Nudge(least, most, levels.lowest, levels.highest);
  RangeValues values{};
  ONCILLA_ASSIGN(values.scale, Number(b, range.scale));
  ONCILLA_ASSIGN(values.least, Number(b, range.least));
  ONCILLA_ASSIGN(values.most, Number(b, range.most));
  return FakeQuant(b, values, kNoValue);
}

// The same with ranges from tensors: one range, or one for each channel of the last axis.
Result<Values> LowerFakeQuantVars(TfLowering& b) {
  ONCILLA_ASSIGN(const Levels levels, ReadLevels(b));
  const ValueId least = b.in(1), most = b.in(2);
  ONCILLA_ASSIGN(const ValueId lowest, Number(b, levels.lowest));
  ONCILLA_ASSIGN(const ValueId highest, Number(b, levels.highest));
  ONCILLA_ASSIGN(const ValueId steps, Number(b, levels.highest - levels.lowest));
  ONCILLA_ASSIGN(const ValueId half, Number(b, 0.5f));
  ONCILLA_ASSIGN(const ValueId zero, Number(b, 0));
  ONCILLA_ASSIGN(const ValueId range, b.Add("Sub", {}, {most, least}, "range"));
  RangeValues values{};
  ONCILLA_ASSIGN(values.scale, b.Add("Div", {}, {range, steps}, "scale"));
  ONCILLA_ASSIGN(ValueId point, b.Add("Div", {}, {least, values.scale}, "least_steps"));
  ONCILLA_ASSIGN(point, b.Add("Sub", {}, {lowest, point}, "zero"));
  ONCILLA_ASSIGN(point, b.Add("Clip", {}, {point, lowest, highest}, "zero_cut"));
  ONCILLA_ASSIGN(point, b.Add("Add", {}, {point, half}, "zero_half"));
  ONCILLA_ASSIGN(point, b.Add("Floor", {}, {point}, "zero_whole"));
  ONCILLA_ASSIGN(ValueId below, b.Add("Sub", {}, {lowest, point}, "below"));
  ONCILLA_ASSIGN(values.least, b.Add("Mul", {}, {below, values.scale}, "least"));
  ONCILLA_ASSIGN(ValueId above, b.Add("Sub", {}, {highest, point}, "above_zero"));
  ONCILLA_ASSIGN(values.most, b.Add("Mul", {}, {above, values.scale}, "most"));
  ONCILLA_ASSIGN(const ValueId low_zero, b.Add("Equal", {}, {least, zero}, "least_zero"));
  ONCILLA_ASSIGN(const ValueId high_zero, b.Add("Equal", {}, {most, zero}, "most_zero"));
  ONCILLA_ASSIGN(const ValueId empty, b.Add("And", {}, {low_zero, high_zero}, "empty"));
  return FakeQuant(b, values, empty);
}

Result<DType> QuantizedType(const TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t number, b.attrs().TypeNumber("T"));
  switch (number) {
    case 11:
      return DType::kI8;
    case 12:
      return DType::kU8;
    case 13:
      return DType::kI32;
    case 15:
      return DType::kI16;
    case 16:
      return DType::kU16;
  }
  return InvalidArgument("type ", number, " is not quantised");
}

Result<std::string> Mode(const TfLowering& b) {
  ONCILLA_ASSIGN(std::string mode, b.attrs().String("mode"));
  for (char& c : mode) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return mode;
}

Result<Values> LowerQuantize(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, QuantizedType(b));
  ONCILLA_ASSIGN(const std::string mode, Mode(b));
  ONCILLA_ASSIGN(const std::string round, b.attrs().String("round_mode"));
  ONCILLA_ASSIGN(const bool narrow, b.attrs().Bool("narrow_range"));
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  ONCILLA_ASSIGN(const float least_range, b.attrs().Float("ensure_minimum_range"));
  if (round == "HALF_TO_EVEN" && mode != "scaled") {
    return InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'");
  }
  const QuantizeRangeAttrs attrs = {.mode = mode,
                                    .to = to,
                                    .half_to_even = round == "HALF_TO_EVEN",
                                    .narrow = narrow,
                                    .axis = axis,
                                    .least_range = least_range};
  const Values inputs = {b.in(0), b.in(1), b.in(2)};
  if (to != DType::kI32 || mode != "min_first" || axis >= 0) return b.AddAll(attrs, inputs);
  // With so many steps it matters that TensorFlow computes in single precision.
  ONCILLA_ASSIGN(const Values all, b.AddAll(attrs, inputs, "range"));
  ONCILLA_ASSIGN(const ValueId y, WordsOf(b, b.in(0), all[1], all[2]));
  return Values{y, all[1], all[2]};
}

Result<Values> LowerDequantize(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, Mode(b));
  ONCILLA_ASSIGN(const bool narrow, b.attrs().Bool("narrow_range"));
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  const DequantizeRangeAttrs attrs = {.mode = mode, .narrow = narrow, .axis = axis};
  const Values inputs = {b.in(0), b.in(1), b.in(2)};
  if (to == DType::kF32) return One(b.Add(attrs, inputs));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, inputs, "wide"));
  return One(b.Add(CastAttrs{to}, {y}));
}

Result<Values> LowerRound(TfLowering& b) {
  ONCILLA_ASSIGN(const bool is_signed, b.attrs().Bool("signed_input"));
  ONCILLA_ASSIGN(const bool given, b.attrs().Bool("range_given"));
  ONCILLA_ASSIGN(const bool narrow, b.attrs().Bool("narrow_range"));
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  int64_t bits = 0;
  bool half_up = false;
  if (b.op() == "QuantizeAndDequantizeV3") {
    ONCILLA_ASSIGN(bits, b.KnownInt(3, "num_bits"));
  } else {
    ONCILLA_ASSIGN(bits, b.attrs().Int("num_bits"));
    ONCILLA_ASSIGN(const std::string round, b.attrs().String("round_mode"));
    half_up = round == "HALF_UP";
  }
  Values inputs = {b.in(0)};
  if (given) inputs.insert(inputs.end(), {b.in(1), b.in(2)});
  return One(b.Add(
      RoundToStepsAttrs{
          .bits = bits, .is_signed = is_signed, .narrow = narrow, .half_up = half_up, .axis = axis},
      std::move(inputs)));
}

// Ops that only move or select elements keep the range.
Result<Values> LowerQuantizedReshape(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId y, b.Add("Reshape", {}, {b.in(0), b.in(1)}));
  return Values{y, b.in(2), b.in(3)};
}

Result<Values> LowerQuantizedMaxPool(TfLowering& b) {
  ONCILLA_ASSIGN(const PoolWindow window, ReadPoolWindow(b, TfLayout(), "ksize"));
  ONCILLA_ASSIGN(const ValueId y, b.Add(MaxPoolAttrs{window}, {b.in(0)}));
  return Values{y, b.in(1), b.in(2)};
}

constexpr TfOpRow kRows[] = {
    {"Dequantize", 3, "", LowerDequantize},
    {"FakeQuantWithMinMaxArgs", 1, "", LowerFakeQuantArgs},
    {"FakeQuantWithMinMaxVars", 3, "", LowerFakeQuantVars},
    {"FakeQuantWithMinMaxVarsPerChannel", 3, "", LowerFakeQuantVars},
    {"QuantizeAndDequantizeV2", 3, "", LowerRound},
    {"QuantizeAndDequantizeV3", 4, "", LowerRound},
    {"QuantizeAndDequantizeV4", 3, "", LowerRound},
    {"QuantizeDownAndShrinkRange", 3, "", LowerShrinkRange},
    {"QuantizeV2", 3, "", LowerQuantize},
    {"QuantizedAdd", 6, "", LowerQuantizedAdd},
    {"QuantizedAvgPool", 3, "", LowerQuantizedAvgPool},
    {"QuantizedBatchNormWithGlobalNormalization", 15, "", LowerQuantizedBatchNorm},
    {"QuantizedBiasAdd", 6, "", LowerQuantizedBiasAdd},
    {"QuantizedConcat", 4, "", LowerQuantizedConcat},
    {"QuantizedConv2D", 6, "", LowerQuantizedConv},
    {"QuantizedInstanceNorm", 3, "", LowerQuantizedInstanceNorm},
    {"QuantizedMatMul", 6, "", LowerQuantizedMatMul},
    {"QuantizedMaxPool", 3, "", LowerQuantizedMaxPool},
    {"QuantizedMul", 6, "", LowerQuantizedMul},
    {"QuantizedRelu", 3, "", LowerQuantizedRelu},
    {"QuantizedRelu6", 3, "", LowerQuantizedRelu},
    {"QuantizedReshape", 4, "", LowerQuantizedReshape},
    {"RequantizationRange", 3, "", LowerRequantizationRange},
    {"Requantize", 5, "", LowerRequantize},
    {"UniformDequantize", 3, "", LowerUniformDequantize},
    {"UniformQuantize", 3, "", LowerUniformQuantize},
    {"UniformRequantize", 5, "", LowerUniformRequantize},
};

}  // namespace

std::span<const TfOpRow> TfQuantRows() { return kRows; }

}  // namespace oncilla
