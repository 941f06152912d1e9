// Random numbers: inference and rows.
#include "engine/ops/math/random.h"

#include <limits>

#include "engine/ops/known_ints.h"
#include "engine/ops/math/variates.h"
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

bool IsDrawn(DType t) {
  return t == DType::kF16 || t == DType::kF32 || t == DType::kF64 || t == DType::kI32 ||
         t == DType::kI64;
}

// Inputs: shape, key, counter, and then the parameters.
Result<Facts> InferSampleDistribution(const SampleDistributionAttrs& attrs,
                                      std::span<const Fact> in) {
  const bool gamma = attrs.distribution == "gamma", binomial = attrs.distribution == "binomial";
  const bool bounded = attrs.distribution == "bounded_normal";
  if (!gamma && !binomial && !bounded && attrs.distribution != "poisson") {
    return InvalidArgument("there is no distribution '", attrs.distribution, "'");
  }
  if (in.size() != (bounded ? 7u : binomial ? 5u : 4u)) {
    return InvalidArgument(in.size(), " inputs for ", attrs.distribution);
  }
  ONCILLA_TRY(RequireU64(in[1], 1, "key"));
  ONCILLA_TRY(RequireU64(in[2], 2, "counter"));
  if (!IsDrawn(attrs.to) || ((gamma || bounded) && !IsFloat(attrs.to))) {
    return InvalidArgument(attrs.distribution, " numbers cannot be ", attrs.to);
  }
  PartialShape parameters = in[3].shape;
  for (const Fact& fact : in.subspan(3)) {
    if (!IsDrawn(fact.dtype) || fact.dtype != (bounded ? attrs.to : in[3].dtype)) {
      return InvalidArgument("parameters cannot be ", fact.dtype);
    }
  }
  if (binomial) {
    if (in[3].dtype != DType::kF32 && in[3].dtype != DType::kF64) {
      return Unsupported("binomial numbers of parameters of ", in[3].dtype);
    }
  }
  for (const Fact& fact : in.subspan(4)) {
    ONCILLA_ASSIGN(parameters, BroadcastShapes(parameters, fact.shape));
  }
  ONCILLA_ASSIGN(PartialShape shape, ShapeOf(in[0]));
  if (!shape.ranked() || !parameters.ranked()) return Facts{Fact::Of(attrs.to, std::move(shape))};
  bool fits = parameters.rank() <= shape.rank();
  for (int i = 1; fits && i <= parameters.rank(); ++i) {
    const Dim &asked = shape[shape.rank() - i], &own = parameters[parameters.rank() - i];
    fits = !asked.known() || !own.known() || asked.size == own.size;
  }
  if (fits) return Facts{Fact::Of(attrs.to, std::move(shape))};
  return InvalidArgument("Shape passed in must end with the parameters' shape ", parameters,
                         ", got ", shape);
}

Status CheckMersenneSeed(int64_t seed) {
  if (seed >= 0 && seed <= std::numeric_limits<uint32_t>::max()) return Status();
  return InvalidArgument("seed ", seed, " is not of 32 bits");
}

Result<Facts> InferMersenneStream(const MersenneAttrs& attrs, std::span<const Fact> in) {
  if (attrs.distribution != "uniform" && attrs.distribution != "normal") {
    return InvalidArgument("there is no distribution '", attrs.distribution, "'");
  }
  ONCILLA_TRY(CheckMersenneSeed(attrs.seed));
  ONCILLA_ASSIGN(PartialShape shape, ShapeOf(in[0]));
  return Facts{Fact::Of(DType::kF64, std::move(shape))};
}

Result<Facts> InferBernoulliStream(const BernoulliAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckMersenneSeed(attrs.seed));
  ONCILLA_TRY(RequireFloat(in[0], "chance"));
  return Facts{Fact::Of(DType::kBool, in[0].shape)};
}

constexpr OpDef kRandomOps[] = {
    Op<InferBernoulliStream>("BernoulliStream", {.inputs = {1, 1}, .is_random = true}),
    Op<InferMersenneStream>("MersenneStream",
                            {.inputs = {1, 1}, .plan_inputs = 0b1, .is_random = true}),
    Op<InferRandomKey>("RandomKey", {.inputs = {1, 1}}),
    Op<InferRandomNumbers>("RandomNumbers", {.inputs = {3, 5}, .plan_inputs = 0b1}),
    Op<InferRandomStream>("RandomStream",
                          {.inputs = {1, 3}, .plan_inputs = 0b1, .is_random = true}),
    Op<InferShuffleRows>("ShuffleRows", {.inputs = {3, 3}}),
    Op<InferShuffle>("ShuffleStream", {.inputs = {1, 1}, .is_random = true}),
    Op<InferSampleDistribution>("SampleDistribution", {.inputs = {4, 7}, .plan_inputs = 0b1}),
    Op<InferSample>("SampleClasses", {.inputs = {4, 4}, .plan_inputs = 0b10}),
    Op<InferSample>("SampleStream", {.inputs = {2, 2}, .plan_inputs = 0b10, .is_random = true}),
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRandomOps; }

}  // namespace oncilla
