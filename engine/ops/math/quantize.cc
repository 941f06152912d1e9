// Quantisation by scales and by ranges: inference and rows.
#include "engine/ops/math/quantize.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status CheckMode(const std::string& mode) {
  if (mode == "min_combined" || mode == "min_first" || mode == "scaled") return {};
  return InvalidArgument("there is no mode '", mode, "'");
}

// Checks a range: one number, or as many as the axis has elements.
Result<Dim> RangeSize(const Fact& x, std::span<const Fact> range, int64_t axis, DType dtype) {
  if (axis < -1) return InvalidArgument("axis is ", axis);
  Dim size(1);
  if (axis >= 0) {
    size = Dim();
    if (x.shape.ranked()) {
      if (axis >= x.shape.rank()) {
        return InvalidArgument("axis ", axis, " is out of range for rank ", x.shape.rank());
      }
      size = x.shape[static_cast<int>(axis)];
    }
  }
  for (const Fact& fact : range) {
    if (fact.dtype != dtype) return InvalidArgument("a range of ", fact.dtype);
    const Dim count = fact.shape.elements();
    if (count.known() && size.known() && count.size != size.size) {
      return InvalidArgument("a range of ", count.size, " elements instead of ", size.size);
    }
  }
  return size;
}

bool IsQuantized(DType t) {
  return t == DType::kI8 || t == DType::kU8 || t == DType::kI16 || t == DType::kU16 ||
         t == DType::kI32;
}

Result<Facts> InferQuantize(const QuantizeRangeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckMode(attrs.mode));
  if (in[0].dtype != DType::kF32) return InvalidArgument("x must be f32, not ", in[0].dtype);
  if (!IsQuantized(attrs.to)) return InvalidArgument("numbers cannot become ", attrs.to);
  ONCILLA_ASSIGN(const Dim size, RangeSize(in[0], in.subspan(1), attrs.axis, DType::kF32));
  const PartialShape range =
      attrs.axis < 0 ? PartialShape(Shape{}) : PartialShape(std::vector<Dim>{size});
  return Facts{Fact::Of(attrs.to, in[0].shape), Fact::Of(DType::kF32, range),
               Fact::Of(DType::kF32, range)};
}

Result<Facts> InferDequantize(const DequantizeRangeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckMode(attrs.mode));
  if (!IsQuantized(in[0].dtype)) return InvalidArgument("x cannot be ", in[0].dtype);
  ONCILLA_TRY(RangeSize(in[0], in.subspan(1), attrs.axis, DType::kF32).status());
  return Facts{Fact::Of(DType::kF32, in[0].shape)};
}

Result<Facts> InferRound(const RoundToStepsAttrs& attrs, std::span<const Fact> in) {
  if (in[0].dtype != DType::kF32 && in[0].dtype != DType::kF64) {
    return Unsupported("of ", in[0].dtype);
  }
  if (attrs.bits < 1 || attrs.bits > (attrs.is_signed ? 62 : 63)) {
    return InvalidArgument("num_bits is out of range: ", attrs.bits);
  }
  if (in.size() == 2) return InvalidArgument("a range has two ends");
  ONCILLA_TRY(RangeSize(in[0], in.subspan(1), attrs.axis, in[0].dtype).status());
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

// Types that numbers can be quantised to.
bool IsLinear(DType t) {
  return (IsInteger(t) && BitsOf(t) <= 32) || IsSmallInteger(t) ||
         (IsSmallFloat(t) && t != DType::kF8E8M0);
}

Status CheckParameters(std::span<const Fact> in, int64_t axis, int64_t block_size, DType stored) {
  if (block_size < 0) return InvalidArgument("block_size is ", block_size);
  const DType scale = in[1].dtype;
  if (!IsFloat(scale) && scale != DType::kF8E8M0 && scale != DType::kI32) {
    return InvalidArgument("the scale cannot be ", scale);
  }
  if (in.size() > 2 && !in[2].absent() && in[2].dtype != stored) {
    return InvalidArgument("the zero point is ", in[2].dtype, ", not ", stored);
  }
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    if (in[0].shape.known() && in[i].shape.known()) {
      ONCILLA_TRY(
          In(PlacesOf(in[0].shape.ToShape(), in[i].shape.ToShape(), axis, block_size).status(),
             i == 1 ? "scale" : "zero_point"));
    }
  }
  return {};
}

Result<Facts> InferQuantizeLinear(const QuantizeLinearAttrs& attrs, std::span<const Fact> in) {
  if (!IsNumber(in[0].dtype)) return InvalidArgument("x cannot be ", in[0].dtype);
  if (!IsLinear(attrs.to)) return InvalidArgument("numbers cannot become ", attrs.to);
  if (!IsFloat(attrs.precision)) return InvalidArgument("a precision of ", attrs.precision);
  ONCILLA_TRY(CheckParameters(in, attrs.axis, attrs.block_size, attrs.to));
  return Facts{Fact::Of(attrs.to, in[0].shape)};
}

Result<Facts> InferDequantizeLinear(const DequantizeLinearAttrs& attrs, std::span<const Fact> in) {
  if (!IsLinear(in[0].dtype)) return InvalidArgument("x cannot be ", in[0].dtype);
  if (!IsFloat(attrs.to)) return InvalidArgument("numbers cannot become ", attrs.to);
  ONCILLA_TRY(CheckParameters(in, attrs.axis, attrs.block_size, in[0].dtype));
  return Facts{Fact::Of(attrs.to, in[0].shape)};
}

Result<Facts> InferCastStored(const CastStoredAttrs& attrs, std::span<const Fact> in) {
  const DType from = in[0].dtype;
  const auto number = [](DType t) {
    return IsNumber(t) || t == DType::kBool || IsSmallInteger(t) || IsSmallFloat(t);
  };
  if (!number(from) || !number(attrs.to)) {
    return InvalidArgument("x is ", from, ", the result would be ", attrs.to);
  }
  if (attrs.round != "up" && attrs.round != "down" && attrs.round != "nearest") {
    return InvalidArgument("there is no rounding '", attrs.round, "'");
  }
  return Facts{Fact::Of(attrs.to, in[0].shape)};
}

// Looks up each byte of x in table[256]; i8 is read as u8.
Result<Facts> InferByteTable(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kU8 && in[0].dtype != DType::kI8) {
    return InvalidArgument("x must be u8 or i8, not ", in[0].dtype);
  }
  if (!IsNumber(in[1].dtype)) return InvalidArgument("a table of ", in[1].dtype);
  ONCILLA_TRY(RequireRank(in[1], 1, "table"));
  const PartialShape& table = in[1].shape;
  if (table.ranked() && table[0].known() && table[0].size != 256) {
    return InvalidArgument("the table has ", table[0].size, " elements, not 256");
  }
  return Facts{Fact::Of(in[1].dtype, in[0].shape)};
}

constexpr OpDef kQuantizeOps[] = {
    Op<InferByteTable>("ByteTable", {.inputs = {2, 2},
                                     .axes = {AxisRule::kElementwise, 0, false, 1},
                                     .work = Work::kPerOutput}),
    Op<InferCastStored>("CastStored", {.axes = Elementwise(), .work = Work::kPerOutput}),
    Op<InferQuantizeLinear>("QuantizeLinear",
                            {.inputs = {2, 3}, .axes = AlongAxis(1), .work = Work::kPerOutput}),
    Op<InferDequantizeLinear>("DequantizeLinear",
                              {.inputs = {2, 3}, .axes = AlongAxis(1), .work = Work::kPerOutput}),
    Op<InferQuantize>("QuantizeRange", {.inputs = {3, 3}}),
    Op<InferDequantize>("DequantizeRange", {.inputs = {3, 3}}),
    Op<InferRound>("RoundToSteps", {.inputs = {1, 3}}),
};

}  // namespace

Result<ParameterPlaces> PlacesOf(const Shape& x, const Shape& parameter, int64_t axis,
                                 int64_t block_size) {
  ParameterPlaces out;
  out.inner = x.elements();
  const bool whole = parameter.rank() == 0 || (parameter.rank() == 1 && parameter[0] == 1);
  if (whole && block_size == 0) return out;
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, x.rank()));
  out.outer = x.Product(0, at);
  out.places = x[at];
  out.inner = x.Product(at + 1, x.rank());
  if (block_size == 0) {
    if (parameter.rank() != 1 || parameter[0] != x[at]) {
      return InvalidArgument("the shape ", parameter, " does not fit axis ", at, " of ", x);
    }
    out.steps.place = 1;
    return out;
  }
  // A scalar parameter applies to a single block of everything.
  if (parameter.rank() == 0) return out;
  Shape wanted = x;
  wanted[at] = x[at] / block_size + (x[at] % block_size == 0 ? 0 : 1);
  if (parameter != wanted) {
    return InvalidArgument("the shape ", parameter, " does not fit blocks of ", block_size,
                           " along axis ", at, " of ", x);
  }
  out.steps = {SaturatingMul(wanted[at], out.inner), out.inner, 1, block_size};
  return out;
}

std::span<const OpDef> QuantizeOps() { return kQuantizeOps; }

}  // namespace oncilla
