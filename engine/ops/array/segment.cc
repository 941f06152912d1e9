// Segment reductions, sorted search and counts: inference and rows.
#include "engine/ops/array/segment.h"

#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The shape of the result: `count` rows in place of the axes of ids.
Result<PartialShape> Segmented(std::string_view reduction, std::span<const Fact> in, Dim count) {
  ONCILLA_TRY(ParseSegmentReduction(reduction).status());
  ONCILLA_TRY(RequireNumber(in[0], "x"));
  ONCILLA_TRY(RequireInteger(in[1], "ids"));
  const PartialShape &x = in[0].shape, &ids = in[1].shape;
  if (!x.ranked() || !ids.ranked()) return PartialShape();
  if (ids.rank() > x.rank()) return InvalidArgument("ids ", ids, " have more axes than x ", x);
  for (int i = 0; i < ids.rank(); ++i) {
    if (x[i].known() && ids[i].known() && x[i].size != ids[i].size) {
      return InvalidArgument("ids ", ids, " are not of the first axes of x ", x);
    }
  }
  std::vector<Dim> dims = {std::move(count)};
  dims.insert(dims.end(), x.dims().begin() + ids.rank(), x.dims().end());
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size(), " is above ", kMaxRank);
  return PartialShape(std::move(dims));
}

// A single number that is not negative; unknown while its value is.
Result<Dim> CountOf(const Fact& fact, std::string_view what) {
  ONCILLA_TRY(RequireInteger(fact, what));
  const Dim elements = fact.shape.elements();
  if (elements.known() && elements.size != 1) {
    return InvalidArgument(what, " must be one number, not shape ", fact.shape);
  }
  const auto known = KnownInts(fact);
  if (AllIntsKnown(fact)) {
    ONCILLA_ASSIGN(const auto values, NeedInts(fact, what));
    if (values[0] < 0) return InvalidArgument(what, " is ", values[0]);
    return Dim(values[0]);
  }
  return known.has_value() && known->size() == 1 ? (*known)[0] : Dim();
}

Result<Facts> InferSegment(const SegmentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const Dim count, CountOf(in[2], "the number of segments"));
  ONCILLA_ASSIGN(PartialShape shape, Segmented(attrs.reduction, in, count));
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferSortedSegment(const SegmentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireRank(in[1], 1, "ids"));
  ONCILLA_ASSIGN(PartialShape shape, Segmented(attrs.reduction, in, Dim()));
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Result<Facts> InferSearchSorted(const SearchSortedAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "sorted"));
  ONCILLA_TRY(RequireSameDType(in));
  if (attrs.to != DType::kI32 && attrs.to != DType::kI64) {
    return InvalidArgument("attribute 'to' must be i32 or i64, not ", attrs.to);
  }
  const PartialShape &sorted = in[0].shape, &values = in[1].shape;
  if (sorted.ranked() && sorted.rank() != 1 && values.ranked()) {
    bool fits = sorted.rank() == values.rank() && sorted.rank() > 0;
    for (int i = 0; fits && i + 1 < sorted.rank(); ++i) {
      fits = !sorted[i].known() || !values[i].known() || sorted[i].size == values[i].size;
    }
    if (!fits) return InvalidArgument("values ", values, " do not fit the rows ", sorted);
  }
  return Facts{Fact::Of(attrs.to, values)};
}

Result<Facts> InferBincount(const BincountAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "x"));
  ONCILLA_ASSIGN(const Dim size, CountOf(in[1], "size"));
  if (Given(in, 2)) {
    ONCILLA_TRY(RequireNumber(in[2], "weights"));
    if (in[2].dtype != attrs.to) {
      return InvalidArgument("weights are ", in[2].dtype, " and the result ", attrs.to);
    }
  }
  if (!IsFloat(attrs.to) && !IsInteger(attrs.to)) return InvalidArgument("counts of ", attrs.to);
  const PartialShape& x = in[0].shape;
  if (!x.ranked()) return Facts{Fact::Of(attrs.to, PartialShape())};
  if (x.rank() > 2) return InvalidArgument("x must be at most a matrix, not ", x);
  if (x.rank() < 2) return Facts{Fact::Of(attrs.to, PartialShape({size}))};
  return Facts{Fact::Of(attrs.to, PartialShape({x[0], size}))};
}

constexpr OpDef kSegmentOps[] = {
    Op<InferSegment>("SegmentReduce",
                     {.inputs = {3, 3}, .plan_inputs = 0b100, .storage = StorageRule::kSums}),
    Op<InferSortedSegment>(
        "SortedSegmentReduce",
        {.inputs = {2, 2}, .data_dependent = true, .storage = StorageRule::kSums}),
    Op<InferSearchSorted>("SearchSorted", {.inputs = {2, 2}}),
    Op<InferBincount>("Bincount", {.inputs = {2, 3}, .plan_inputs = 0b10}),
};

}  // namespace

Result<SegmentReduction> ParseSegmentReduction(std::string_view text) {
  if (text == "sum") return SegmentReduction::kSum;
  if (text == "mean") return SegmentReduction::kMean;
  if (text == "sqrtn") return SegmentReduction::kSqrtN;
  if (text == "prod") return SegmentReduction::kProd;
  if (text == "max") return SegmentReduction::kMax;
  if (text == "min") return SegmentReduction::kMin;
  return InvalidArgument("there is no reduction '", text, "' of segments");
}

std::span<const OpDef> SegmentOps() { return kSegmentOps; }

}  // namespace oncilla
