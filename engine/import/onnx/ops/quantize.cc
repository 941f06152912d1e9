// ONNX's quantisation, by its formulas: integers are computed exactly, scaled, rounded half to even
// and clipped to the range of the result's type.
#include "engine/import/onnx/ops/quantize.h"

#include <limits>

#include "engine/import/onnx/ops/window.h"
#include "engine/ops/math/quantize.h"
#include "engine/tensor/dispatch.h"

namespace oncilla {

Result<ValueId> RoundInto(OnnxLowering& b, ValueId x, ValueId zero_point, DType to,
                          std::string_view role) {
  ONCILLA_ASSIGN(ValueId y, b.Add("Round", {}, {x}, "rounded"));
  if (zero_point != kNoValue) {
    ONCILLA_ASSIGN(const ValueId zero, b.Cast(zero_point, DType::kF32, "zero_point"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, zero}, "moved"));
  }
  double low = 0, high = 0;
  if (!IsInteger(to) || BitsOf(to) > 16) return Unsupported("to ", to);
  DispatchDType(to, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      low = static_cast<double>(std::numeric_limits<T>::min());
      high = static_cast<double>(std::numeric_limits<T>::max());
    }
  });
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, low));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kF32, high));
  ONCILLA_ASSIGN(const ValueId cut, b.Add("Clip", {}, {y, least, most}, "cut"));
  return b.Cast(cut, to, role);
}

namespace {

Result<Values> LowerQuantize(OnnxLowering& b) {
  QuantizeLinearAttrs attrs;
  ONCILLA_ASSIGN(attrs.axis, b.Int("axis", 1));
  ONCILLA_ASSIGN(attrs.block_size, b.Int("block_size", 0));
  ONCILLA_ASSIGN(attrs.saturate, b.Flag("saturate", true));
  // 0 means that it is not given.
  ONCILLA_ASSIGN(const int64_t asked, b.Int("output_dtype", 0));
  if (asked != 0) {
    ONCILLA_ASSIGN(attrs.to, b.Type("output_dtype", DType::kU8));
  }
  if (b.has(2)) {
    if (asked != 0 && attrs.to != b.dtype(2)) {
      return InvalidArgument("output_dtype is ", attrs.to, ", the zero point ", b.dtype(2));
    }
    attrs.to = b.dtype(2);
  }
  ONCILLA_ASSIGN(const int64_t precision, b.Int("precision", 0));
  if (precision != 0) {
    ONCILLA_ASSIGN(attrs.precision, b.Type("precision", DType::kF32));
  }
  return One(b.Add("QuantizeLinear", attrs, b.all_inputs()));
}

Result<Values> LowerDequantize(OnnxLowering& b) {
  DequantizeLinearAttrs attrs;
  ONCILLA_ASSIGN(attrs.axis, b.Int("axis", 1));
  ONCILLA_ASSIGN(attrs.block_size, b.Int("block_size", 0));
  ONCILLA_ASSIGN(const int64_t asked, b.Int("output_dtype", 0));
  attrs.to = b.dtype(1);
  if (asked != 0) {
    ONCILLA_ASSIGN(attrs.to, b.Type("output_dtype", attrs.to));
  }
  return One(b.Add("DequantizeLinear", attrs, b.all_inputs()));
}

}  // namespace

Result<DynamicBytes> AddDynamicBytes(OnnxLowering& b, ValueId x, std::string_view role,
                                     ValueId ranged) {
  if (ranged == kNoValue) ranged = x;
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(const ValueId steps, b.Scalar(DType::kF32, 255));
  ONCILLA_ASSIGN(ValueId low, b.Add("ReduceMin", {}, {ranged}, "least"));
  ONCILLA_ASSIGN(low, b.Add("Min", {}, {low, none}, "low"));
  ONCILLA_ASSIGN(ValueId high, b.Add("ReduceMax", {}, {ranged}, "most"));
  ONCILLA_ASSIGN(high, b.Add("Max", {}, {high, none}, "high"));
  ONCILLA_ASSIGN(const ValueId range, b.Add("Sub", {}, {high, low}, "range"));
  ONCILLA_ASSIGN(ValueId scale, b.Add("Div", {}, {range, steps}, "step"));
  // If all numbers are zero, any scale but zero is right.
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Equal", {}, {scale, none}, "flat"));
  ONCILLA_ASSIGN(scale, b.Add("Where", {}, {flat, one, scale}, "scale"));
  ONCILLA_ASSIGN(ValueId zero, b.Add("Div", {}, {low, scale}, "low_steps"));
  ONCILLA_ASSIGN(zero, b.Add("Neg", {}, {zero}, "offset"));
  ONCILLA_ASSIGN(zero, b.Add("Clip", {}, {zero, none, steps}, "cut_offset"));
  ONCILLA_ASSIGN(zero, b.Add("Round", {}, {zero}, "whole_offset"));
  ONCILLA_ASSIGN(const ValueId point, b.Cast(zero, DType::kU8, "offset_u8"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Div", {}, {x, scale}, "steps"));
  ONCILLA_ASSIGN(const ValueId y, RoundInto(b, places, zero, DType::kU8, role));
  return DynamicBytes{y, scale, point};
}

Result<ValueId> Moved(OnnxLowering& b, size_t x, size_t zero, bool rows, std::string_view role) {
  const std::string name(role);
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(x), DType::kI32, name + "_wide"));
  if (!b.has(zero)) return wide;
  ONCILLA_ASSIGN(ValueId point, b.Cast(b.in(zero), DType::kI32, name + "_zero_wide"));
  const PartialShape shape = b.fact(point).shape;
  if (!shape.ranked()) return Unsupported("a zero point of unknown rank");
  if (rows && shape.rank() == 1 && shape[0].size != 1) {
    ONCILLA_ASSIGN(point, b.Unsqueeze(point, {1}, name + "_rows"));
  }
  return b.Add("Sub", {}, {wide, point}, role);
}

namespace {

Result<Values> LowerDynamicQuantize(OnnxLowering& b) {
  ONCILLA_ASSIGN(const DynamicBytes y, AddDynamicBytes(b, b.in(0), ""));
  return Values{y.x, y.scale, y.zero};
}

// MatMulInteger takes a number or a vector as a zero point; ONNX also allows matrices of them.
bool IsVector(OnnxLowering& b, size_t zero) {
  if (!b.has(zero)) return true;
  const PartialShape& shape = b.in_fact(zero).shape;
  return shape.ranked() && shape.rank() <= 1;
}

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

}  // namespace

Result<ValueId> AddIntegerProduct(OnnxLowering& b, const IntegerProduct& product,
                                  const MatMulIntegerAttrs& attrs, std::string_view role) {
  if (IsVector(b, product.a_zero) && IsVector(b, product.b_zero) && IsByte(b.dtype(product.a)) &&
      IsByte(b.dtype(product.b))) {
    return b.Add(attrs,
                 {b.in(product.a), b.in(product.b), b.in(product.a_zero), b.in(product.b_zero)},
                 role);
  }
  ONCILLA_ASSIGN(const ValueId x, Moved(b, product.a, product.a_zero, !attrs.transpose_a, "a"));
  ONCILLA_ASSIGN(const ValueId y, Moved(b, product.b, product.b_zero, attrs.transpose_b, "b"));
  return b.Add(AsMatMul(attrs), {x, y}, role);
}

Result<ValueId> AddRequantized(OnnxLowering& b, ValueId sums, ValueId scale, ValueId zero, DType to,
                               std::string_view role) {
  // ONNX Runtime treats a single number as a scalar, whatever its shape is.
  return b.Add(RequantizeAttrs{.to = to}, {sums, scale, zero}, role);
}

namespace {

Result<Values> LowerMatMulInteger(OnnxLowering& b) {
  const IntegerProduct product = {0, 1, 2, 3};
  return One(AddIntegerProduct(b, product, {}, ""));
}

// Inputs: a, its scale and zero point, b and its own, and those of the result.
Result<Values> LowerQLinearMatMul(OnnxLowering& b) {
  const IntegerProduct product = {0, 3, 2, 5};
  ONCILLA_ASSIGN(const ValueId sum, AddIntegerProduct(b, product, {}, "sum"));
  ValueId a_scale = b.in(1);
  const PartialShape shape = b.in_fact(1).shape;
  const bool rows = shape.ranked() && shape.rank() == 1 && shape[0].size != 1;
  const PartialShape a = b.in_fact(0).shape;
  if (a.ranked() && a.rank() == 1) {  // one row; the file may leave its size open
    ONCILLA_ASSIGN(a_scale, b.ToScalar(a_scale, "a_scale"));
  } else if (rows) {
    ONCILLA_ASSIGN(a_scale, b.Unsqueeze(a_scale, {1}, "a_scale"));
  }
  ONCILLA_ASSIGN(ValueId scale, b.Add("Mul", {}, {a_scale, b.in(4)}, "scales"));
  ONCILLA_ASSIGN(scale, b.Add("Div", {}, {scale, b.in(6)}, "scale"));
  ONCILLA_ASSIGN(scale, b.Cast(scale, DType::kF32, "float_scale"));
  const PartialShape factors = b.fact(scale).shape;
  if (factors.ranked() && factors.rank() <= 1) {
    return One(AddRequantized(b, sum, scale, b.in(7), b.dtype(7), ""));
  }
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, "real"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {real, scale}, "scaled"));
  return One(RoundInto(b, scaled, b.in(7), b.dtype(7)));
}

// The sums of a convolution of x - zero point with w - zero point, channels-last.
struct IntegerConv {
  int rank = 0;
  bool last = false;  // the model's tensors are channels-last
  ValueId y = kNoValue;
};
Result<IntegerConv> AddIntegerConv(OnnxLowering& b, size_t w, size_t x_zero, size_t w_zero,
                                   ValueId bias) {
  IntegerConv out;
  ONCILLA_ASSIGN(out.rank, b.Rank(0));
  // com.microsoft's convolution may be channels-last already.
  if (b.op() == "QLinearConv") {
    ONCILLA_ASSIGN(out.last, b.Flag("channels_last", false));
  }
  const int rank = out.rank;
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  auto attrs = window.As<ConvIntegerAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  b.Ignore("kernel_shape");
  ValueId x = b.in(0);
  if (!out.last) {
    ONCILLA_ASSIGN(x, b.ChannelsLast(x, rank));
  }
  std::vector<int64_t> perm;
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  perm.push_back(0);
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(w), std::move(perm), "filter"));
  ONCILLA_ASSIGN(out.y, b.Add(attrs, {x, filter, b.in(x_zero), b.in(w_zero), bias}, "sums"));
  return out;
}

Result<Values> LowerConvInteger(OnnxLowering& b) {
  ONCILLA_ASSIGN(const IntegerConv conv, AddIntegerConv(b, 1, 2, 3, kNoValue));
  return One(b.ChannelsFirst(conv.y, conv.rank));
}

Result<Values> LowerQLinearConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const IntegerConv conv, AddIntegerConv(b, 3, 2, 5, b.in(8)));
  // Scales per output channel belong to the last axis, where the channels are now.
  ONCILLA_ASSIGN(ValueId scale, b.Add("Mul", {}, {b.in(1), b.in(4)}, "scales"));
  ONCILLA_ASSIGN(scale, b.Add("Div", {}, {scale, b.in(6)}, "scale"));
  ONCILLA_ASSIGN(const ValueId y, AddRequantized(b, conv.y, scale, b.in(7), b.dtype(7),
                                                 conv.last ? "" : "channels_last_result"));
  if (conv.last) return Values{y};
  return One(b.ChannelsFirst(y, conv.rank));
}

// Products of 16-bit integers; their sums wrap around in 32 bits.
Result<Values> LowerMatMulInteger16(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kI32, "a"));
  ONCILLA_ASSIGN(const ValueId y, b.Cast(b.in(1), DType::kI32, "b"));
  return One(b.Add(MatMulAttrs(), {x, y}));
}

constexpr OnnxOpRow kRows[] = {
    {"ConvInteger", 10, kNewestOnnxOpset, 2, "", LowerConvInteger},
    {"DequantizeLinear", 10, kNewestOnnxOpset, 2, "", LowerDequantize},
    {"DynamicQuantizeLinear", 11, kNewestOnnxOpset, 1, "", LowerDynamicQuantize},
    {"MatMulInteger", 10, kNewestOnnxOpset, 2, "", LowerMatMulInteger},
    {"QLinearConv", 10, kNewestOnnxOpset, 8, "", LowerQLinearConv},
    {"QLinearMatMul", 10, kNewestOnnxOpset, 8, "", LowerQLinearMatMul},
    {"QuantizeLinear", 10, kNewestOnnxOpset, 2, "", LowerQuantize},
};

// The same names in com.microsoft, for types and layouts that ONNX did not support.
constexpr OnnxOpRow kMicrosoftRows[] = {
    {"DequantizeLinear", 1, kNewestOnnxMicrosoft, 2, "", LowerDequantize},
    {"MatMulInteger16", 1, kNewestOnnxMicrosoft, 2, "", LowerMatMulInteger16},
    {"QLinearConv", 1, kNewestOnnxMicrosoft, 8, "", LowerQLinearConv},
    {"QuantizeLinear", 1, kNewestOnnxMicrosoft, 2, "", LowerQuantize},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftLinearRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxQuantRows() { return kRows; }

}  // namespace oncilla
