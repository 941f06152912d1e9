// Quantisation of inputs at run time, by LiteRT's rules.
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

Result<ValueId> Number(TfliteLowering& b, double value) { return b.Scalar(DType::kF32, value); }

Result<ValueId> Cut(TfliteLowering& b, ValueId x, double least, double most,
                    std::string_view role) {
  ONCILLA_ASSIGN(const ValueId low, Number(b, least));
  ONCILLA_ASSIGN(const ValueId high, Number(b, most));
  return b.Add("Clip", {}, {x, low, high}, role);
}

// Whole numbers from -128 to 127 as bytes from 0 on, which products of bytes multiply as they are.
Result<ValueId> Bytes(TfliteLowering& b, ValueId x) {
  ONCILLA_ASSIGN(const ValueId moved, Number(b, 128));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Add", {}, {x, moved}, "unsigned"));
  return b.Cast(above, DType::kU8, "bytes");
}
ValueId BytesZero(TfliteLowering& b) {
  return b.Constant(Tensor::Of<uint8_t>(DType::kU8, {}, {{uint8_t{128}}}));
}
// The zero point of such bytes, as f32, where the numbers have `zero`.
Result<ValueId> MovedZero(TfliteLowering& b, ValueId zero) {
  ONCILLA_ASSIGN(const ValueId moved, Number(b, 128));
  return b.Add("Add", {}, {zero, moved}, "unsigned_zero");
}

// x where it is not zero, and `otherwise` elsewhere.
Result<ValueId> NotZero(TfliteLowering& b, ValueId x, double otherwise, std::string_view role) {
  ONCILLA_ASSIGN(const ValueId none, Number(b, 0));
  ONCILLA_ASSIGN(const ValueId instead, Number(b, otherwise));
  ONCILLA_ASSIGN(const ValueId is_none, b.Add("Equal", {}, {x, none}, StrCat(role, "_none")));
  return b.Add("Where", {}, {is_none, instead, x}, role);
}

// Converts integer sums to real numbers and adds bias and activation.
Result<Values> Scaled(TfliteLowering& b, ValueId sums, const TfliteBytes& x, ValueId bias,
                      int64_t activation, std::string_view role = "") {
  const std::vector<float>& scales = b.tensor(1).quantization.scale;
  const Shape shape = scales.size() == 1 ? Shape{} : Shape{std::ssize(scales)};
  const ValueId weights = b.Constant(Tensor::Of<float>(DType::kF32, shape, scales));
  ONCILLA_ASSIGN(const ValueId scale, b.Add("Mul", {}, {x.scale, weights}, "scale"));
  const std::string_view last = activation == 0 ? role : b.Inner(activation);
  ONCILLA_ASSIGN(ValueId y,
                 b.Add("Mul", {}, {sums, scale}, bias == kNoValue ? last : "without_bias"));
  if (bias != kNoValue) {
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, bias}, last));
  }
  return One(b.Activated(y, activation));
}

}  // namespace

Result<TfliteBytes> TfliteQuantiseRows(TfliteLowering& b, ValueId x, std::vector<int64_t> axes,
                                       bool asymmetric) {
  const ReduceAttrs along = {.keep_dims = true};
  TfliteBytes out;
  if (!asymmetric) {
    ONCILLA_ASSIGN(const ValueId sizes, b.Add("Abs", {}, {x}, "sizes"));
    ONCILLA_ASSIGN(const ValueId top, b.Add("ReduceMax", along, {sizes, b.Ints(axes)}, "top"));
    ONCILLA_ASSIGN(const ValueId range, NotZero(b, top, 127, "range"));
    ONCILLA_ASSIGN(const ValueId steps, Number(b, 127));
    ONCILLA_ASSIGN(out.scale, b.Add("Div", {}, {range, steps}, "row_scale"));
    ONCILLA_ASSIGN(const ValueId inverse, b.Add("Div", {}, {steps, range}, "row_steps"));
    ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {x, inverse}, "scaled"));
    ONCILLA_ASSIGN(const ValueId whole, b.Add("RoundAway", {}, {scaled}, "rounded"));
    ONCILLA_ASSIGN(const ValueId cut, Cut(b, whole, -127, 127, "cut"));
    ONCILLA_ASSIGN(out.bytes, Bytes(b, cut));
    return out;
  }
  ONCILLA_ASSIGN(const ValueId none, Number(b, 0));
  ONCILLA_ASSIGN(const ValueId bottom, b.Add("ReduceMin", along, {x, b.Ints(axes)}, "bottom"));
  ONCILLA_ASSIGN(const ValueId top, b.Add("ReduceMax", along, {x, b.Ints(axes)}, "top"));
  ONCILLA_ASSIGN(const ValueId least, b.Add("Min", {}, {bottom, none}, "least"));
  ONCILLA_ASSIGN(const ValueId most, b.Add("Max", {}, {top, none}, "most"));
  ONCILLA_ASSIGN(const ValueId width, b.Add("Sub", {}, {most, least}, "width"));
  ONCILLA_ASSIGN(const ValueId range, NotZero(b, width, 255, "range"));
  ONCILLA_ASSIGN(const ValueId steps, Number(b, 255));
  ONCILLA_ASSIGN(out.scale, b.Add("Div", {}, {range, steps}, "row_scale"));
  // The zero point that maps the lowest number to -128. For a row of zeros, any will do.
  ONCILLA_ASSIGN(const ValueId low, Number(b, -128));
  ONCILLA_ASSIGN(const ValueId begin, b.Add("Div", {}, {least, out.scale}, "begin"));
  ONCILLA_ASSIGN(const ValueId point, b.Add("Sub", {}, {low, begin}, "point"));
  ONCILLA_ASSIGN(const ValueId near, b.Add("RoundAway", {}, {point}, "near"));
  ONCILLA_ASSIGN(out.zero, Cut(b, near, -128, 127, "row_zero"));
  ONCILLA_ASSIGN(const ValueId one, Number(b, 1));
  ONCILLA_ASSIGN(const ValueId inverse, b.Add("Div", {}, {one, out.scale}, "row_steps"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {x, inverse}, "scaled"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {scaled, out.zero}, "moved"));
  ONCILLA_ASSIGN(const ValueId whole, b.Add("RoundAway", {}, {moved}, "rounded"));
  ONCILLA_ASSIGN(const ValueId cut, Cut(b, whole, -128, 127, "cut"));
  ONCILLA_ASSIGN(out.bytes, Bytes(b, cut));
  return out;
}

bool IsTfliteHybrid(const TfliteLowering& b, size_t x, size_t weights) {
  return b.dtype(x) == DType::kF32 && b.dtype(weights) == DType::kI8 &&
         IsQuantised(b.tensor(weights)) && !IsQuantised(b.output_tensor());
}

Status CheckTfliteHybrid(const TfliteLowering& b, size_t weights) {
  const TfliteTensor& tensor = b.tensor(weights);
  ONCILLA_TRY(CheckTfliteScales(tensor, true));
  for (const int64_t zero : tensor.quantization.zero_point) {
    if (zero != 0) return Unsupported("weights with the zero point ", zero);
  }
  return {};
}

Result<Values> TfliteHybridProduct(TfliteLowering& b, ValueId x, const MatMulIntegerAttrs& attrs,
                                   ValueId bias, bool asymmetric, int64_t activation,
                                   std::string_view role) {
  ONCILLA_ASSIGN(const TfliteBytes rows, TfliteQuantiseRows(b, x, {-1}, asymmetric));
  ONCILLA_ASSIGN(const ValueId sums, b.Add(attrs, {rows.bytes, b.in(1), BytesZero(b)}, "sums"));
  ONCILLA_ASSIGN(ValueId y, b.Cast(sums, DType::kF32, "real"));
  if (rows.zero != kNoValue) {
    // A row's zero point adds to each sum: itself times the sum of the weights. This is subtracted.
    const int64_t along = attrs.transpose_b ? -1 : -2;
    ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(1), DType::kI32, "weights"));
    ONCILLA_ASSIGN(ValueId totals, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true},
                                         {wide, b.Ints({along})}, "totals"));
    if (attrs.transpose_b) {
      const int rank = b.fact(totals).shape.rank();
      std::vector<int64_t> perm;
      for (int i = 0; i < rank; ++i) perm.push_back(i);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      ONCILLA_ASSIGN(totals, b.Add("Transpose", {}, {totals, b.Ints(perm)}, "totals_row"));
    }
    ONCILLA_ASSIGN(const ValueId real, b.Cast(totals, DType::kF32, "real_totals"));
    ONCILLA_ASSIGN(const ValueId extra, b.Add("Mul", {}, {rows.zero, real}, "extra"));
    ONCILLA_ASSIGN(y, b.Add("Sub", {}, {y, extra}, "exact"));
  }
  return Scaled(b, y, rows, bias, activation, role);
}

Result<Values> TfliteHybridConv(TfliteLowering& b, const ConvIntegerAttrs& attrs, ValueId filter,
                                ValueId bias, bool asymmetric, int64_t activation) {
  const PartialShape shape = b.in_fact(0).shape;
  if (!shape.ranked() || shape.rank() != 4) return Unsupported("of an image ", shape);
  ONCILLA_ASSIGN(TfliteBytes image, TfliteQuantiseRows(b, b.in(0), {1, 2, 3}, asymmetric));
  // A single image has numbers without axes: then every kernel takes the zero point, and the
  // product can multiply its sums by the scale.
  const bool single = shape[0].known() && shape[0].size == 1;
  if (single) {
    ONCILLA_ASSIGN(image.scale, b.Add("Reshape", {}, {image.scale, b.Ints({})}, "image_scale"));
  }
  ValueId sums = kNoValue;
  if (image.zero == kNoValue) {
    ONCILLA_ASSIGN(sums, b.Add(attrs, {image.bytes, filter, BytesZero(b)}, "sums"));
  } else {
    const ValueId count = single ? b.Ints({}) : b.Ints({-1});
    ONCILLA_ASSIGN(const ValueId moved, MovedZero(b, image.zero));
    ONCILLA_ASSIGN(const ValueId each, b.Add("Reshape", {}, {moved, count}, "zeros"));
    ONCILLA_ASSIGN(const ValueId zero, b.Cast(each, DType::kU8, "zero"));
    ONCILLA_ASSIGN(sums, b.Add(attrs, {image.bytes, filter, zero}, "sums"));
  }
  ONCILLA_ASSIGN(const ValueId y, b.Cast(sums, DType::kF32, "real"));
  return Scaled(b, y, image, bias, activation);
}

Result<Values> TfliteHybridConvTranspose(TfliteLowering& b, const ConvTransposeAttrs& attrs,
                                         ValueId sizes, ValueId bias, int64_t activation) {
  ONCILLA_ASSIGN(const TfliteBytes image, TfliteQuantiseRows(b, b.in(2), {1, 2, 3}, true));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(image.bytes, DType::kF32, "wide"));
  ONCILLA_ASSIGN(const ValueId zero, MovedZero(b, image.zero));
  ONCILLA_ASSIGN(const ValueId x, b.Add("Sub", {}, {wide, zero}, "centred"));
  ONCILLA_ASSIGN(const ValueId weights, b.Cast(b.in(1), DType::kF32, "weights"));
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(weights, {1, 2, 0, 3}, "filter"));
  ONCILLA_ASSIGN(const ValueId sums, b.Add(attrs, {x, filter, kNoValue, sizes}, "sums"));
  return Scaled(b, sums, image, bias, activation);
}

}  // namespace oncilla
