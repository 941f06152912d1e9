// Quantisation by ranges: inference and rows.
#include "engine/ops/math/quantize.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status CheckMode(const std::string& mode) {
  if (mode == "min_combined" || mode == "min_first" || mode == "scaled") return {};
  return InvalidArgument("there is no mode '", mode, "'");
}

// One number, or as many as the axis has.
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

constexpr OpDef kQuantizeOps[] = {
    Op<InferQuantize>("QuantizeRange", {.inputs = {3, 3}}),
    Op<InferDequantize>("DequantizeRange", {.inputs = {3, 3}}),
    Op<InferRound>("RoundToSteps", {.inputs = {1, 3}}),
};

}  // namespace

std::span<const OpDef> QuantizeOps() { return kQuantizeOps; }

}  // namespace oncilla
