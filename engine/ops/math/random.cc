// Random numbers: inference and rows.
#include "engine/ops/math/random.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireU64(const Fact& fact, int64_t count, std::string_view what) {
  if (fact.dtype != DType::kU64) return InvalidArgument(what, " must be u64, not ", fact.dtype);
  const Dim elements = fact.shape.elements();
  if (!elements.known() || elements.size >= count) return Status();
  return InvalidArgument(what, " has ", elements.size, " elements instead of ", count);
}

Result<Facts> InferRandomKey(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "seed"));
  const auto shape = MergeShapes(in[0].shape, PartialShape({Dim(2)}));
  if (!shape.ok()) return In(shape.status(), "seed");
  return Facts{Fact::Of(DType::kU64, PartialShape({Dim(1)})),
               Fact::Of(DType::kU64, PartialShape({Dim(2)}))};
}

Result<PartialShape> ShapeOf(const Fact& shape) {
  ONCILLA_TRY(RequireInteger(shape, "shape"));
  ONCILLA_TRY(RequireRank(shape, 1, "shape"));
  const auto known = KnownInts(shape);
  if (!known) return PartialShape();
  for (const Dim& dim : *known) {
    if (dim.size < Dim::kUnknown) return InvalidArgument("a size is ", dim.size);
  }
  if (std::ssize(*known) > kMaxRank) return InvalidArgument("shape has ", known->size(), " sizes");
  return PartialShape(*known);
}

Result<Facts> InferNumbers(const RandomAttrs& attrs, std::span<const Fact> in, size_t bounds) {
  const bool bounded = attrs.distribution == "uniform_int";
  const bool whole = bounded || attrs.distribution == "full_int";
  if (!whole && attrs.distribution != "uniform" && attrs.distribution != "normal" &&
      attrs.distribution != "truncated_normal") {
    return InvalidArgument("there is no distribution '", attrs.distribution, "'");
  }
  const bool wide = attrs.to == DType::kI32 || attrs.to == DType::kI64 || attrs.to == DType::kU32 ||
                    attrs.to == DType::kU64;
  if (whole ? !wide : !IsFloat(attrs.to)) {
    return InvalidArgument(attrs.distribution, " numbers cannot be ", attrs.to);
  }
  if (in.size() != bounds + (bounded ? 2 : 0)) {
    return InvalidArgument(in.size(), " inputs for ", attrs.distribution);
  }
  for (size_t i = bounds; i < in.size(); ++i) {
    const Dim count = in[i].shape.elements();
    if (in[i].dtype != attrs.to || (count.known() && count.size != 1)) {
      return InvalidArgument("bounds must be one ", attrs.to, " each");
    }
  }
  ONCILLA_ASSIGN(PartialShape shape, ShapeOf(in[0]));
  return Facts{Fact::Of(attrs.to, std::move(shape))};
}

Result<Facts> InferRandomNumbers(const RandomAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireU64(in[1], 1, "key"));
  ONCILLA_TRY(RequireU64(in[2], 2, "counter"));
  return InferNumbers(attrs, in, 3);
}

Result<Facts> InferRandomStream(const RandomAttrs& attrs, std::span<const Fact> in) {
  return InferNumbers(attrs, in, 1);
}

Result<Facts> InferShuffle(const ShuffleAttrs&, std::span<const Fact> in) {
  if (in[0].dtype == DType::kString) return Unsupported("of strings");
  if (in[0].shape.ranked() && in[0].shape.rank() == 0) {
    return InvalidArgument("x has no first axis");
  }
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferShuffleRows(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireU64(in[1], 1, "key"));
  ONCILLA_TRY(RequireU64(in[2], 2, "counter"));
  return InferShuffle({}, in);
}

Result<Facts> InferSample(const SampleAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "logits"));
  ONCILLA_TRY(RequireRank(in[0], 2, "logits"));
  ONCILLA_TRY(RequireInteger(in[1], "num_samples"));
  if (attrs.to != DType::kI32 && attrs.to != DType::kI64) {
    return InvalidArgument("classes cannot be ", attrs.to);
  }
  if (in.size() > 2) {
    ONCILLA_TRY(RequireU64(in[2], 1, "key"));
    ONCILLA_TRY(RequireU64(in[3], 2, "counter"));
  }
  Dim count;
  if (AllIntsKnown(in[1])) {
    ONCILLA_ASSIGN(const std::vector<int64_t> values, NeedInts(in[1], "num_samples"));
    if (values.size() != 1 || values[0] < 0) {
      return InvalidArgument("num_samples should be nonnegative");
    }
    count = Dim(values[0]);
  }
  if (in[0].shape.ranked() && in[0].shape[1].size == 0) {
    return InvalidArgument("num_classes should be positive, got 0");
  }
  const Dim rows = in[0].shape.ranked() ? in[0].shape[0] : Dim();
  return Facts{Fact::Of(attrs.to, PartialShape({rows, count}))};
}

constexpr OpDef kRandomOps[] = {
    Op<InferRandomKey>("RandomKey", {.inputs = {1, 1}}),
    Op<InferRandomNumbers>("RandomNumbers", {.inputs = {3, 5}, .plan_inputs = 0b1}),
    Op<InferRandomStream>("RandomStream",
                          {.inputs = {1, 3}, .plan_inputs = 0b1, .is_random = true}),
    Op<InferShuffleRows>("ShuffleRows", {.inputs = {3, 3}}),
    Op<InferShuffle>("ShuffleStream", {.inputs = {1, 1}, .is_random = true}),
    Op<InferSample>("SampleClasses", {.inputs = {4, 4}, .plan_inputs = 0b10}),
    Op<InferSample>("SampleStream", {.inputs = {2, 2}, .plan_inputs = 0b10, .is_random = true}),
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRandomOps; }

}  // namespace oncilla
