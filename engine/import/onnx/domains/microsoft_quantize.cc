// com.microsoft's ops on quantised tensors: widened to float, computed, and rounded again. Scales
// are numbers, or for weights one for each column.
#include "engine/import/onnx/ops/quantize.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

// (x - zero) * scale in float, of the inputs at these places.
Result<ValueId> Widened(OnnxLowering& b, size_t x, size_t scale, size_t zero,
                        const std::string& name) {
  ONCILLA_ASSIGN(const ValueId moved, Moved(b, x, zero, false, name));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(moved, DType::kF32, name + "_real"));
  return b.Add("Mul", {}, {real, b.in(scale)}, name + "_scaled");
}

// x in float as the type of the first input, by scale and zero point at these places.
Result<Values> Narrowed(OnnxLowering& b, ValueId x, size_t scale, size_t zero, DType to) {
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Div", {}, {x, b.in(scale)}, "steps"));
  return One(RoundInto(b, steps, b.in(zero), to));
}

// QLinearAdd and QLinearMul.
Result<Values> LowerQLinearBinary(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 0, 1, 2, "a"));
  ONCILLA_ASSIGN(const ValueId y, Widened(b, 3, 4, 5, "b"));
  ONCILLA_ASSIGN(const ValueId z,
                 b.Add(b.op() == "QLinearAdd" ? "Add" : "Mul", {}, {x, y}, "result"));
  return Narrowed(b, z, 6, 7, b.dtype());
}

Result<Values> LowerQLinearSigmoid(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 0, 1, 2, "x"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Sigmoid", {}, {x}, "result"));
  return Narrowed(b, y, 3, 4, b.dtype());
}

Result<Values> LowerQLinearLeakyRelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 0.01f));
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 0, 1, 2, "x"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("LeakyRelu", AlphaAttrs{alpha}, {x}, "result"));
  return Narrowed(b, y, 3, 4, b.dtype());
}

Result<Values> LowerQLinearSoftmax(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t opset, b.NeedInt("opset"));
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  // Before opset 13 the axes from `axis` on count as one.
  if (opset < 13 && axis != -1 && axis != rank - 1) {
    return Unsupported("by the rules of opset ", opset, " along axis ", axis);
  }
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 0, 1, 2, "x"));
  ONCILLA_ASSIGN(const ValueId y, b.Add(SoftmaxAttrs{.axis = axis}, {x}, "result"));
  return Narrowed(b, y, 3, 4, b.dtype());
}

Result<Values> LowerQLinearAveragePool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", false));
  ONCILLA_ASSIGN(const bool count_pads, b.Flag("count_include_pad", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, false));
  AveragePoolAttrs attrs = {window.As<PoolWindow>(), count_pads};
  ONCILLA_ASSIGN(attrs.kernel, OnnxSpatialList(b, "kernel_shape", rank - 2));
  ONCILLA_ASSIGN(attrs.ceil, b.Flag("ceil_mode", false));
  ONCILLA_ASSIGN(ValueId x, Widened(b, 0, 1, 2, "x"));
  if (!last) {
    ONCILLA_ASSIGN(x, b.ChannelsLast(x, rank));
  }
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {x}, "result"));
  if (!last) {
    ONCILLA_ASSIGN(y, b.ChannelsFirst(y, rank, "channels_first"));
  }
  return Narrowed(b, y, 3, 4, b.dtype());
}

Result<Values> LowerQLinearGlobalAveragePool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3) return InvalidArgument("an input of rank ", rank);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank - 2; ++i) axes.push_back(i + (last ? 1 : 2));
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 0, 1, 2, "x"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("ReduceMean", ReduceAttrs{.keep_dims = true},
                                        {x, b.Ints(std::move(axes))}, "result"));
  return Narrowed(b, y, 3, 4, b.dtype());
}

// Scale and zero point of the result, then tensor, scale and zero point of each part.
Result<Values> LowerQLinearConcat(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.NeedInt("axis"));
  if (b.inputs() < 5 || (b.inputs() - 2) % 3 != 0) {
    return InvalidArgument("has ", b.inputs(), " inputs, not 2 and 3 of each part");
  }
  Values parts;
  for (size_t i = 2; i < b.inputs(); i += 3) {
    ONCILLA_ASSIGN(const ValueId part, Widened(b, i, i + 1, i + 2, StrCat("part", i / 3)));
    parts.push_back(part);
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(ConcatAttrs{.axis = axis}, std::move(parts), "result"));
  return Narrowed(b, y, 0, 1, b.dtype(2));
}

Result<Values> LowerQLinearWhere(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, Widened(b, 1, 2, 3, "x"));
  ONCILLA_ASSIGN(const ValueId y, Widened(b, 4, 5, 6, "y"));
  ONCILLA_ASSIGN(const ValueId z, b.Add("Where", {}, {b.in(0), x, y}, "result"));
  return Narrowed(b, z, 7, 8, b.dtype(1));
}

// Sums of a product in float, before any bias.
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

// A in u8 by the range of its numbers, which contains zero; then the product.
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
  // Whole numbers of at most 8 bits: what is left to do in float is exact.
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

// alpha * A' * B' + C, where C is in the steps of the product; in float without a scale for it.
Result<Values> LowerQGemm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  ONCILLA_ASSIGN(const ValueId x, Moved(b, 0, 2, false, "a"));
  const PartialShape b_scale = b.in_fact(4).shape;
  const bool columns = b_scale.ranked() && b_scale.rank() == 1 && b_scale[0].size != 1;
  // Zero points of columns stand along B's rows where B is transposed.
  ONCILLA_ASSIGN(const ValueId y, Moved(b, 3, 5, columns && transpose_b, "b"));
  const MatMulAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  ONCILLA_ASSIGN(ValueId sum, b.Add(attrs, {x, y}, "sum"));
  if (b.has(6)) {
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, b.in(6)}, "with_bias"));
  }
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, "real"));
  ONCILLA_ASSIGN(ValueId scale, b.Add("Mul", {}, {b.in(1), b.in(4)}, "scales"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(DType::kF32, double{alpha}));
  ONCILLA_ASSIGN(scale, b.Add("Mul", {}, {scale, factor}, "scale"));
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {real, scale}, b.has(7) ? "scaled" : ""));
  if (!b.has(7)) return Values{product};
  return Narrowed(b, product, 7, 8, b.has(8) ? b.dtype(8) : DType::kU8);
}

constexpr OnnxOpRow kRows[] = {
    {"DynamicQuantizeMatMul", 1, kNewestOnnxMicrosoft, 3, "", LowerDynamicQuantizeMatMul},
    {"MatMulIntegerToFloat", 1, kNewestOnnxMicrosoft, 4, "", LowerMatMulIntegerToFloat},
    {"QGemm", 1, kNewestOnnxMicrosoft, 6, "", LowerQGemm},
    {"QLinearAdd", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearBinary},
    {"QLinearAveragePool", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearAveragePool},
    {"QLinearConcat", 1, kNewestOnnxMicrosoft, 5, "", LowerQLinearConcat},
    {"QLinearGlobalAveragePool", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearGlobalAveragePool},
    {"QLinearLeakyRelu", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearLeakyRelu},
    {"QLinearMul", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearBinary},
    {"QLinearSigmoid", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearSigmoid},
    {"QLinearSoftmax", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearSoftmax},
    {"QLinearWhere", 1, kNewestOnnxMicrosoft, 9, "", LowerQLinearWhere},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftQuantRows() { return kRows; }

}  // namespace oncilla
