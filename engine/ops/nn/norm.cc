// Normalisation ops: inference and rows.
#include "engine/ops/nn/norm.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Facts SameAs(const Fact& fact) { return Facts{Fact::Of(fact.dtype, fact.shape)}; }

Result<Facts> InferSoftmax(const SoftmaxAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  if (in[0].shape.ranked()) ONCILLA_TRY(NormalizeAxis(attrs.axis, in[0].shape.rank()).status());
  return SameAs(in[0]);
}

// Checks a floating-point vector of `channels` elements. It need not have x's dtype: a model in f16
// keeps its statistics in f32.
Status RequirePerChannel(const Fact& fact, const Dim& channels, std::string_view what) {
  ONCILLA_TRY(RequireFloat(fact, what));
  ONCILLA_TRY(RequireRank(fact, 1, what));
  if (fact.shape.ranked() && fact.shape[0].known() && channels.known() &&
      fact.shape[0].size != channels.size) {
    return InvalidArgument(what, " has ", fact.shape[0], " elements for ", channels, " channels");
  }
  return Status();
}

Result<Facts> InferBatchNorm(const BatchNormAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  Dim channels;
  if (in[0].shape.ranked()) {
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, in[0].shape.rank()));
    channels = in[0].shape[axis];
  }
  constexpr const char* kNames[] = {"input", "scale", "offset", "mean", "variance"};
  for (int i = 1; i < 5; ++i) ONCILLA_TRY(RequirePerChannel(in[i], channels, kNames[i]));
  return SameAs(in[0]);
}

Result<Facts> InferLayerNorm(const LayerNormAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  PartialShape normalized;
  if (in[0].shape.ranked()) {
    ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, in[0].shape.rank()));
    const auto& dims = in[0].shape.dims();
    normalized = PartialShape(std::vector<Dim>(dims.begin() + axis, dims.end()));
  }
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    const char* what = i == 1 ? "scale" : "offset";
    ONCILLA_TRY(RequireFloat(in[i], what));
    if (!in[i].shape.ranked() || !normalized.ranked()) continue;
    auto merged = BroadcastShapes(normalized, in[i].shape);
    if (!merged.ok() || merged->rank() != normalized.rank() ||
        !MergeShapes(*merged, normalized).ok()) {
      return InvalidArgument(what, " of shape ", in[i].shape, " does not fit the normalised sizes ",
                             normalized);
    }
  }
  return SameAs(in[0]);
}

Result<Facts> InferChannelsLast(const Fact& x, std::span<const Fact> per_channel, Dim* channels) {
  ONCILLA_TRY(RequireFloat(x, "input"));
  if (x.shape.ranked()) {
    if (x.shape.rank() < 2) {
      return InvalidArgument("input must have samples and channels, not shape ", x.shape);
    }
    *channels = x.shape[x.shape.rank() - 1];
  }
  ONCILLA_TRY(RequirePerChannel(per_channel[0], *channels, "scale"));
  ONCILLA_TRY(RequirePerChannel(per_channel[1], *channels, "offset"));
  return SameAs(x);
}

Result<Facts> InferInstanceNorm(const InstanceNormAttrs&, std::span<const Fact> in) {
  Dim channels;
  return InferChannelsLast(in[0], in.subspan(1), &channels);
}

Result<Facts> InferGroupNorm(const GroupNormAttrs& attrs, std::span<const Fact> in) {
  Dim channels;
  ONCILLA_ASSIGN(Facts out, InferChannelsLast(in[0], in.subspan(1), &channels));
  if (attrs.groups <= 0 || (channels.known() && channels.size % attrs.groups != 0)) {
    return InvalidArgument("attribute 'groups' is ", attrs.groups, " for ", channels, " channels");
  }
  return out;
}

Result<Facts> InferLrn(const LrnAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  if (attrs.size <= 0) return InvalidArgument("attribute 'size' is ", attrs.size);
  if (in[0].shape.ranked()) ONCILLA_TRY(NormalizeAxis(attrs.axis, in[0].shape.rank()).status());
  return SameAs(in[0]);
}

Result<Facts> InferLpNormalize(const LpNormalizeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  if (attrs.p != 1 && attrs.p != 2) {
    return InvalidArgument("attribute 'p' must be 1 or 2, not ", attrs.p);
  }
  if (in[0].shape.ranked()) ONCILLA_TRY(NormalizeAxis(attrs.axis, in[0].shape.rank()).status());
  return SameAs(in[0]);
}

constexpr OpDef kNormOps[] = {
    Op<InferSoftmax>(
        "Softmax",
        {.axes = AlongAxis(-1), .storage = StorageRule::kBounds, .work = Work::kPerInput}),
    Op<InferBatchNorm>("BatchNorm", {.inputs = {5, 5},
                                     .may_overwrite = true,
                                     .axes = AlongAxis(-1),
                                     .storage = StorageRule::kCarries,
                                     .work = Work::kPerInput}),
    Op<InferLayerNorm>("LayerNorm", {.inputs = {1, 3},
                                     .axes = AxesBy(AxisRule::kAxisToEnd, -1),
                                     .storage = StorageRule::kCarries,
                                     .work = Work::kPerInput}),
    Op<InferLayerNorm>("RmsNorm", {.inputs = {1, 2},
                                   .axes = AxesBy(AxisRule::kAxisToEnd, -1),
                                   .storage = StorageRule::kCarries,
                                   .work = Work::kPerInput}),
    Op<InferInstanceNorm>("InstanceNorm", {.inputs = {3, 3},
                                           .axes = Samples(),
                                           .storage = StorageRule::kCarries,
                                           .work = Work::kPerInput}),
    Op<InferGroupNorm>("GroupNorm", {.inputs = {3, 3},
                                     .axes = Samples(),
                                     .storage = StorageRule::kCarries,
                                     .work = Work::kPerInput}),
    Op<InferLrn>(
        "LRN", {.axes = AlongAxis(-1), .storage = StorageRule::kCarries, .work = Work::kPerInput}),
    Op<InferLpNormalize>(
        "LpNormalize",
        {.axes = AlongAxis(-1), .storage = StorageRule::kSums, .work = Work::kPerInput}),
};

}  // namespace

std::span<const OpDef> NormOps() { return kNormOps; }

}  // namespace oncilla
