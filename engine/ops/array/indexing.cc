// Ops that take indices from a tensor: inference and rows. Shapes as values are in
// indexing_shape.cc.
#include "engine/ops/array/indexing.h"

#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The elements that a Gather picks from a list of partly known integers, if the indices are known
// and in range.
std::optional<std::vector<Dim>> Picked(const GatherAttrs& attrs, const Fact& x,
                                       const Fact& indices) {
  const auto elements = CarriedElements(x);
  if (!elements || !indices.shape.ranked() || indices.shape.rank() > 1 || !AllIntsKnown(indices)) {
    return std::nullopt;
  }
  const auto at = NeedInts(indices, "indices");
  if (!at.ok()) return std::nullopt;
  const auto size = static_cast<int64_t>(elements->size());
  std::vector<Dim> out;
  for (int64_t i : *at) {
    if (i < 0 && attrs.negative_indices) i += size;
    if (i < 0 || i >= size) return std::nullopt;
    out.push_back((*elements)[static_cast<size_t>(i)]);
  }
  return out;
}

Result<Facts> InferGather(const GatherAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  const PartialShape &x = in[0].shape, &indices = in[1].shape;
  if (!x.ranked() || !indices.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  const int64_t batch = attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims;
  if (batch < 0 || batch > axis || batch > indices.rank()) {
    return InvalidArgument("batch_dims ", attrs.batch_dims, " does not fit axis ", axis,
                           " and indices of rank ", indices.rank());
  }
  std::vector<Dim> dims;
  for (int i = 0; i < axis; ++i) dims.push_back(x[i]);
  for (int i = 0; i < batch; ++i) {
    if (x[i].known() && indices[i].known() && x[i].size != indices[i].size) {
      return InvalidArgument("x ", x, " and indices ", indices, " differ in batch axis ", i);
    }
    if (indices[i].known() || dims[i].name.empty()) dims[i] = x[i].known() ? x[i] : indices[i];
  }
  for (int i = static_cast<int>(batch); i < indices.rank(); ++i) dims.push_back(indices[i]);
  for (int i = axis + 1; i < x.rank(); ++i) dims.push_back(x[i]);
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size(), " is above ", kMaxRank);
  Fact out = Fact::Of(in[0].dtype, PartialShape(std::move(dims)));
  if (x.rank() == 1 && batch == 0) out = WithCarried(std::move(out), Picked(attrs, in[0], in[1]));
  return Facts{std::move(out)};
}

// Checks that x and indices have the same rank, and that indices are not larger than x except along
// `axis`.
Status CheckElements(int64_t axis, const PartialShape& x, const PartialShape& indices) {
  if (x.ranked() && indices.ranked() && x.rank() != indices.rank()) {
    return InvalidArgument("x ", x, " and indices ", indices, " differ in rank");
  }
  const PartialShape& ranked = x.ranked() ? x : indices;
  if (!ranked.ranked()) return Status();
  ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, ranked.rank()));
  if (!x.ranked() || !indices.ranked()) return Status();
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at && x[i].known() && indices[i].known() && indices[i].size > x[i].size) {
      return InvalidArgument("indices ", indices, " reach beyond x ", x, " on axis ", i);
    }
  }
  return Status();
}

Result<Facts> InferGatherElements(const GatherElementsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  ONCILLA_TRY(CheckElements(attrs.axis, in[0].shape, in[1].shape));
  PartialShape shape = in[1].shape;
  if (!shape.ranked() && in[0].shape.ranked()) shape = PartialShape::OfRank(in[0].shape.rank());
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

// How many axes of x, counted from `batch` on, the indices address; -1 while that is unknown.
Result<int> IndexDepth(const PartialShape& x, const PartialShape& indices, int64_t batch) {
  if (!indices.ranked()) return -1;
  if (indices.rank() == 0) return InvalidArgument("indices have no last axis");
  if (batch < 0 || batch >= indices.rank() || (x.ranked() && batch > x.rank())) {
    return InvalidArgument("batch_dims ", batch, " does not fit x ", x, " and indices ", indices);
  }
  const Dim& depth = indices[indices.rank() - 1];
  if (!depth.known()) return -1;
  if (depth.size > kMaxRank || (x.ranked() && batch + depth.size > x.rank())) {
    return InvalidArgument("indices ", indices, " name ", depth.size, " axes, more than x ", x,
                           " has");
  }
  return static_cast<int>(depth.size);
}

Result<Facts> InferGatherND(const GatherNDAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  const PartialShape &x = in[0].shape, &indices = in[1].shape;
  ONCILLA_ASSIGN(const int depth, IndexDepth(x, indices, attrs.batch_dims));
  if (depth < 0 || !x.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  const auto batch = static_cast<int>(attrs.batch_dims);
  std::vector<Dim> dims(indices.dims().begin(), indices.dims().end() - 1);
  for (int i = 0; i < batch; ++i) {
    if (x[i].known() && dims[i].known() && x[i].size != dims[i].size) {
      return InvalidArgument("x ", x, " and indices ", indices, " differ in batch axis ", i);
    }
    if (x[i].known() || dims[i].name.empty()) dims[i] = x[i];
  }
  dims.insert(dims.end(), x.dims().begin() + batch + depth, x.dims().end());
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size(), " is above ", kMaxRank);
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

Status CheckUpdates(std::string_view reduction, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  ONCILLA_ASSIGN(const Reduction r, ParseReduction(reduction));
  if (in[2].dtype != in[0].dtype) {
    return InvalidArgument("updates are ", in[2].dtype, ", not ", in[0].dtype);
  }
  const bool joined = r == Reduction::kAdd && in[0].dtype == DType::kString;
  if (r != Reduction::kNone && !joined) {
    ONCILLA_TRY(RequireNumber(in[0], "what is combined"));
  }
  return Status();
}

Result<Facts> InferScatterElements(const ScatterElementsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckUpdates(attrs.reduction, in));
  ONCILLA_TRY(CheckElements(attrs.axis, in[0].shape, in[1].shape));
  if (!MergeShapes(in[1].shape, in[2].shape).ok()) {
    return InvalidArgument("updates ", in[2].shape, " are not of the shape of indices ",
                           in[1].shape);
  }
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferScatterND(const ScatterNDAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckUpdates(attrs.reduction, in));
  const PartialShape &x = in[0].shape, &indices = in[1].shape;
  ONCILLA_ASSIGN(const int depth, IndexDepth(x, indices, 0));
  if (depth >= 0 && x.ranked()) {
    std::vector<Dim> dims(indices.dims().begin(), indices.dims().end() - 1);
    dims.insert(dims.end(), x.dims().begin() + depth, x.dims().end());
    if (!MergeShapes(in[2].shape, PartialShape(std::move(dims))).ok()) {
      return InvalidArgument("updates ", in[2].shape, " do not fit x ", x, " and indices ",
                             indices);
    }
  }
  return Facts{Fact::Of(in[0].dtype, x)};
}

constexpr OpDef kIndexingOps[] = {
    Op<InferGather>(
        "Gather",
        {.inputs = {2, 2}, .axes = AxesBy(AxisRule::kGathers), .storage = StorageRule::kStarts}),
    Op<InferGatherElements>("GatherElements", {.inputs = {2, 2}, .storage = StorageRule::kCarries}),
    Op<InferGatherND>("GatherND", {.inputs = {2, 2}, .storage = StorageRule::kCarries}),
    Op<InferScatterElements>(
        "ScatterElements",
        {.inputs = {3, 3}, .may_overwrite_first = true, .storage = StorageRule::kSums}),
    Op<InferScatterND>(
        "ScatterND",
        {.inputs = {3, 3}, .may_overwrite_first = true, .storage = StorageRule::kSums}),
};

}  // namespace

Result<Reduction> ParseReduction(std::string_view text) {
  if (text == "none") return Reduction::kNone;
  if (text == "add") return Reduction::kAdd;
  if (text == "mul") return Reduction::kMul;
  if (text == "max") return Reduction::kMax;
  if (text == "min") return Reduction::kMin;
  return InvalidArgument("there is no reduction '", text, "'");
}

std::span<const OpDef> IndexingOps() { return kIndexingOps; }

}  // namespace oncilla
