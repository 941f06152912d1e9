// com.microsoft's products of quantised matrices: exact sums, scaled afterwards. A scale is one
// number; weights may have one per column.
#include "engine/import/onnx/ops/quantize.h"

namespace oncilla {
namespace {

// The sums of a product in float, before any bias.
Result<ValueId> Scaled(OnnxLowering& b, ValueId sum, ValueId x_scale, ValueId y_scale) {
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, "real"));
  ONCILLA_ASSIGN(const ValueId scale, b.Add("Mul", {}, {x_scale, y_scale}, "scale"));
  return b.Add("Mul", {}, {real, scale}, "scaled");
}

Result<Values> WithBias(OnnxLowering& b, ValueId y, size_t bias) {
  if (!b.has(bias)) return One(b.Add("Identity", {}, {y}));
  return One(b.Add("Add", {}, {y, b.in(bias)}));
}

Result<Values> LowerMatMulIntegerToFloat(OnnxLowering& b) {
  const IntegerProduct inputs = {0, 1, 4, 5};
  ONCILLA_ASSIGN(const ValueId sum, AddIntegerProduct(b, inputs, {}, "sum"));
  ONCILLA_ASSIGN(const ValueId product, Scaled(b, sum, b.in(2), b.in(3)));
  return WithBias(b, product, 6);
}

// Quantises A to u8 over the range of its numbers extended to zero, and then multiplies.
Result<Values> LowerDynamicQuantizeMatMul(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kF32, 255));
  ONCILLA_ASSIGN(ValueId low, b.Add("ReduceMin", {}, {b.in(0)}, "least"));
  ONCILLA_ASSIGN(low, b.Add("Min", {}, {low, none}, "low"));
  ONCILLA_ASSIGN(ValueId high, b.Add("ReduceMax", {}, {b.in(0)}, "most"));
  ONCILLA_ASSIGN(high, b.Add("Max", {}, {high, none}, "high"));
  ONCILLA_ASSIGN(const ValueId range, b.Add("Sub", {}, {high, low}, "range"));
  ONCILLA_ASSIGN(ValueId scale, b.Add("Div", {}, {range, most}, "step"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Equal", {}, {scale, none}, "flat"));
  ONCILLA_ASSIGN(scale, b.Add("Where", {}, {flat, one, scale}, "a_scale"));
  ONCILLA_ASSIGN(ValueId zero, b.Add("Div", {}, {low, scale}, "low_steps"));
  ONCILLA_ASSIGN(zero, b.Add("Neg", {}, {zero}, "offset"));
  ONCILLA_ASSIGN(zero, b.Add("Clip", {}, {zero, none, most}, "cut_offset"));
  ONCILLA_ASSIGN(zero, b.Add("Round", {}, {zero}, "a_zero"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Div", {}, {b.in(0), scale}, "steps"));
  // These are integers of at most 8 bits, so the remaining float arithmetic is exact.
  ONCILLA_ASSIGN(ValueId x, b.Add("Round", {}, {steps}, "rounded"));
  ONCILLA_ASSIGN(x, b.Add("Add", {}, {x, zero}, "raised"));
  ONCILLA_ASSIGN(x, b.Add("Clip", {}, {x, none, most}, "cut"));
  ONCILLA_ASSIGN(x, b.Add("Sub", {}, {x, zero}, "a_float"));
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kI32, "a"));
  ONCILLA_ASSIGN(const ValueId y, Moved(b, 1, 3, false, "b"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add(MatMulAttrs(), {x, y}, "sum"));
  ONCILLA_ASSIGN(const ValueId product, Scaled(b, sum, scale, b.in(2)));
  return WithBias(b, product, 4);
}

// alpha * A' * B' + C, where C is quantised in the steps of the product, requantised to y_scale;
// the result is float if there is no y_zero_point.
Result<Values> LowerQGemm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  const MatMulIntegerAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  const IntegerProduct inputs = {0, 3, 2, 5};
  ONCILLA_ASSIGN(ValueId sum, AddIntegerProduct(b, inputs, attrs, "sum"));
  if (b.has(6)) {
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(6)}, "with_bias"));
  }
  // The factors are multiplied in ONNX Runtime's order.
  ONCILLA_ASSIGN(ValueId scale, b.ToScalar(b.in(1), "a_scale"));
  if (alpha != 1) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(DType::kF32, double{alpha}));
    ONCILLA_ASSIGN(scale, b.Add("Mul", {}, {factor, scale}, "alpha"));
  }
  ONCILLA_ASSIGN(scale, b.Add("Mul", {}, {scale, b.in(4)}, "scales"));
  if (b.has(7)) {
    ONCILLA_ASSIGN(const ValueId y_scale, b.ToScalar(b.in(7), "y_scale"));
    ONCILLA_ASSIGN(scale, b.Add("Div", {}, {scale, y_scale}, "scale"));
  }
  if (b.has(8)) return One(AddRequantized(b, sum, scale, b.in(8), b.dtype(8), ""));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, "real"));
  return One(b.Add("Mul", {}, {real, scale}));
}

constexpr OnnxOpRow kRows[] = {
    {"DynamicQuantizeMatMul", 1, kNewestOnnxMicrosoft, 3, "", LowerDynamicQuantizeMatMul},
    {"MatMulIntegerToFloat", 1, kNewestOnnxMicrosoft, 4, "", LowerMatMulIntegerToFloat},
    {"QGemm", 1, kNewestOnnxMicrosoft, 6, "", LowerQGemm},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftQuantRows() { return kRows; }

}  // namespace oncilla
