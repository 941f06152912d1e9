// Exact arithmetic on quantised tensors: inference, geometry and rows.
#include "engine/ops/nn/integer.h"

#include <algorithm>

#include "engine/ops/rules.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

Status CheckOperands(const Fact& x, const Fact& weights) {
  if (x.dtype != DType::kU8 && x.dtype != DType::kI8 && x.dtype != DType::kI16) {
    return InvalidArgument("the first operand must be u8, i8 or i16, not ", x.dtype);
  }
  if (weights.dtype != DType::kU8 && weights.dtype != DType::kI8) {
    return InvalidArgument("the second operand must be u8 or i8, not ", weights.dtype);
  }
  return Status();
}

bool Has(std::span<const Fact> in, size_t i) { return i < in.size() && !in[i].absent(); }

// Checks zero point input `i`, which belongs to input `of`; a vector must have `places` elements.
Status CheckZero(std::span<const Fact> in, size_t i, size_t of, const Dim& places,
                 std::string_view what) {
  if (!Has(in, i)) return Status();
  if (in[i].dtype != in[of].dtype) {
    return InvalidArgument("a zero point of ", in[i].dtype, " for ", in[of].dtype);
  }
  const PartialShape& shape = in[i].shape;
  if (!shape.ranked() || shape.rank() == 0) return Status();
  if (shape.rank() > 1) return InvalidArgument("a zero point of the shape ", shape);
  if (!shape[0].known() || shape[0].size == 1) return Status();
  if (places.known() && places.size != shape[0].size) {
    return InvalidArgument(shape[0].size, " zero points for ", places.size, " ", what);
  }
  return Status();
}

Status CheckFactors(const RequantizeAttrs& attrs, std::span<const Fact> in) {
  const Fact &x = in[0], &scale = in[1];
  if (!scale.shape.ranked() || scale.shape.rank() == 0) return Status();
  if (scale.shape.rank() > 1) return InvalidArgument("scales of the shape ", scale.shape);
  if (!scale.shape[0].known() || scale.shape[0].size == 1 || !x.shape.ranked()) return Status();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.shape.rank()));
  if (x.shape[axis].known() && x.shape[axis].size != scale.shape[0].size) {
    return InvalidArgument(scale.shape[0].size, " scales for ", x.shape[axis].size, " places");
  }
  return Status();
}

Status CheckFixed(const RequantizeAttrs& attrs, std::span<const Fact> in) {
  if (in[1].dtype != DType::kI32) return InvalidArgument("a scale of ", in[1].dtype);
  if (!Has(in, 3)) return InvalidArgument("mode fixed needs a shift");
  if (in[3].dtype != DType::kI32) return InvalidArgument("a shift of ", in[3].dtype);
  if (attrs.left_shift < 0 || attrs.left_shift > 30) {
    return InvalidArgument("left_shift is ", attrs.left_shift);
  }
  if (!MergeShapes(in[1].shape, in[3].shape).ok()) {
    return InvalidArgument("scales ", in[1].shape, " and shifts ", in[3].shape);
  }
  if (in[0].dtype == DType::kI64 && attrs.left_shift != 0) {
    return InvalidArgument("left_shift needs an input of at most 32 bits");
  }
  // Checks the shifts at compile time if they are known, so that devices that cannot report errors
  // need not check.
  if (!in[3].has_value()) return Status();
  return CheckShifts(in[0].dtype, in[3].value.As<int32_t>());
}

Result<Facts> InferRequantize(const RequantizeAttrs& attrs, std::span<const Fact> in) {
  const DType x = in[0].dtype;
  if (!IsInteger(x) || (BitsOf(x) > 32 && x != DType::kI64) || x == DType::kU32 || BitsOf(x) < 8) {
    return InvalidArgument("x must be an integer, not ", x);
  }
  if (!IsInteger(attrs.to) || BitsOf(attrs.to) < 8 || BitsOf(attrs.to) > 32 ||
      attrs.to == DType::kU32) {
    return InvalidArgument("sums cannot become ", attrs.to);
  }
  if (attrs.x_zero < -65536 || attrs.x_zero > 65536) {
    return InvalidArgument("x_zero is ", attrs.x_zero);
  }
  if (attrs.mode == "fixed") {
    ONCILLA_TRY(CheckFixed(attrs, in));
  } else if (attrs.mode == "float") {
    if (in[1].dtype != DType::kF32) return InvalidArgument("a scale of ", in[1].dtype);
    if (Has(in, 3)) return InvalidArgument("mode float takes no shift");
    if (attrs.left_shift != 0) return InvalidArgument("mode float takes no left_shift");
  } else {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  if (Has(in, 2)) {
    if (in[2].dtype != attrs.to) {
      return InvalidArgument("a zero point of ", in[2].dtype, " for ", attrs.to);
    }
    const Dim count = in[2].shape.elements();
    if (count.known() && count.size != 1) return InvalidArgument(count.size, " zero points");
  }
  const IntegerRange range = RangeOf(attrs);
  if (range.least > range.most) {
    return InvalidArgument("the range from ", attrs.least, " to ", attrs.most, " is empty");
  }
  ONCILLA_TRY(CheckFactors(attrs, in));
  return Facts{Fact::Of(attrs.to, in[0].shape)};
}

// What a `real` epilogue makes of sums.
Result<Facts> InferReal(const IntegerEpilogue& epilogue, std::span<const Fact> in,
                        const Fact& sums) {
  if (epilogue.to != DType::kF32) return InvalidArgument("real results are f32, not ", epilogue.to);
  if (Has(in, 7)) return InvalidArgument("real results take no shift");
  const PartialShape& shape = sums.shape;
  for (const size_t i : {size_t{5}, size_t{6}}) {
    if (!Has(in, i)) continue;
    const std::string_view what = i == 5 ? "scale" : "term";
    if (in[i].dtype != DType::kF32) return InvalidArgument("a ", what, " of ", in[i].dtype);
    const PartialShape& given = in[i].shape;
    if (!given.ranked() || given.rank() == 0) continue;
    if (given.rank() > 1) return InvalidArgument("a ", what, " of the shape ", given);
    if (!given[0].known() || given[0].size == 1 || !shape.ranked() || shape.rank() == 0) continue;
    const Dim& places = shape[shape.rank() - 1];
    if (places.known() && places.size != given[0].size) {
      return InvalidArgument(what, " ", given, " for ", places.size, " places");
    }
  }
  return Facts{Fact::Of(DType::kF32, shape)};
}

// The result after the epilogue is applied to the sums.
Result<Facts> InferEnd(const IntegerEpilogue& epilogue, std::span<const Fact> in,
                       PartialShape shape) {
  const Fact* bias = Has(in, 4) ? &in[4] : nullptr;
  if (bias != nullptr && bias->dtype != DType::kI32 && bias->dtype != DType::kI64) {
    return InvalidArgument("bias must be i32 or i64, not ", bias->dtype);
  }
  const Fact sums = Fact::Of(SumType(in[0].dtype, bias), std::move(shape));
  if (epilogue.none()) {
    if (in.size() > 5) return InvalidArgument("scales without an epilogue");
    return Facts{sums};
  }
  if (!Has(in, 5)) return InvalidArgument("the epilogue needs a scale");
  if (epilogue.real()) return InferReal(epilogue, in, sums);
  Facts inputs = {sums};
  inputs.insert(inputs.end(), in.begin() + 5, in.end());
  return InferRequantize(AsRequantize(epilogue), inputs);
}

Dim Last(const PartialShape& shape) { return shape.ranked() ? shape[shape.rank() - 1] : Dim(); }

Result<Facts> InferConvInteger(const ConvIntegerAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckOperands(in[0], in[1]));
  const Facts operands = {in[0], in[1], Has(in, 4) ? in[4] : Fact::Absent()};
  ONCILLA_ASSIGN(PartialShape shape, ConvShape(AsConv(attrs), operands));
  ONCILLA_TRY(CheckZero(in, 2, 0, in[0].shape.ranked() ? in[0].shape[0] : Dim(), "samples"));
  ONCILLA_TRY(CheckZero(in, 3, 1, shape.ranked() ? Last(shape) : Dim(), "output channels"));
  return InferEnd(attrs.epilogue, in, std::move(shape));
}

Result<Facts> InferMatMulInteger(const MatMulIntegerAttrs& attrs, std::span<const Fact> in) {
  const Fact &a = in[0], &b = in[1];
  ONCILLA_TRY(CheckOperands(a, b));
  if (Has(in, 4)) ONCILLA_TRY(RequireRank(in[4], 1, "bias"));
  ONCILLA_ASSIGN(PartialShape shape, MatMulShape(AsMatMul(attrs), a, b));
  if (Has(in, 4)) ONCILLA_TRY(CheckProductBias(in[4], b, shape));
  const auto place = [](const PartialShape& s, bool last) {
    if (!s.ranked()) return Dim();
    if (s.rank() < 2) return Dim(1);
    return s[s.rank() - (last ? 1 : 2)];
  };
  ONCILLA_TRY(CheckZero(in, 2, 0, place(a.shape, attrs.transpose_a), "rows"));
  ONCILLA_TRY(CheckZero(in, 3, 1, place(b.shape, !attrs.transpose_b), "columns"));
  return InferEnd(attrs.epilogue, in, std::move(shape));
}

constexpr OpDef kIntegerOps[] = {
    Op<InferConvInteger>("ConvInteger",
                         {.inputs = {2, 8}, .axes = Samples(0b101), .work = Work::kTaps}),
    Op<InferMatMulInteger>("MatMulInteger", {.inputs = {2, 8}, .work = Work::kProduct}),
    Op<InferRequantize>("Requantize",
                        {.inputs = {2, 4}, .axes = AlongAxis(-1), .work = Work::kPerOutput}),
};

}  // namespace

RequantizeAttrs AsRequantize(const IntegerEpilogue& epilogue) {
  return {.mode = epilogue.requantize,
          .to = epilogue.to,
          .least = epilogue.least,
          .most = epilogue.most};
}

DType SumType(DType x, const Fact* bias) {
  if (bias != nullptr) return bias->dtype;
  return x == DType::kI16 ? DType::kI64 : DType::kI32;
}

ConvAttrs AsConv(const ConvIntegerAttrs& attrs) {
  ConvAttrs conv;
  conv.strides = attrs.strides;
  conv.dilations = attrs.dilations;
  conv.pads = attrs.pads;
  conv.auto_pad = attrs.auto_pad;
  conv.groups = attrs.groups;
  return conv;
}

MatMulAttrs AsMatMul(const MatMulIntegerAttrs& attrs) {
  MatMulAttrs product;
  product.transpose_a = attrs.transpose_a;
  product.transpose_b = attrs.transpose_b;
  return product;
}

RequantizeSpan SpanOf(const RequantizeAttrs& attrs, const Shape& x, const Shape& scale) {
  RequantizeSpan span;
  if (scale.elements() == 1) {
    span.inner = x.elements();
    return span;
  }
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis);
  span.outer = x.Product(0, axis);
  span.count = x[axis];
  span.inner = x.Product(axis + 1, x.rank());
  return span;
}

IntegerRange RangeOf(const RequantizeAttrs& attrs) {
  const IntegerLimits limits = LimitsOf(attrs.to);
  return {std::max(attrs.least, limits.least), std::min(attrs.most, limits.most)};
}

Status CheckShifts(DType x, std::span<const int32_t> shifts) {
  const int32_t most = x == DType::kI64 ? 14 : 30;
  for (const int32_t shift : shifts) {
    if (shift < -31 || shift > most) return InvalidArgument("a shift is ", shift);
  }
  return Status();
}

std::span<const OpDef> IntegerOps() { return kIntegerOps; }

}  // namespace oncilla
