// Sparse and ragged tensors, and partitions: inference and rows.
#include "engine/ops/array/sparse.h"

#include <algorithm>

#include "engine/ops/array/sets.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Fact Ints(PartialShape shape) { return Fact::Of(DType::kI64, std::move(shape)); }
PartialShape List(Dim size = {}) { return PartialShape({std::move(size)}); }

Dim RankOf(const Fact& indices) { return indices.shape.ranked() ? indices.shape[1] : Dim(); }
Dim SizeOf(const Fact& list) {
  return list.shape.ranked() && list.shape.rank() == 1 ? list.shape[0] : Dim();
}

Result<Facts> InferSparseToDense(const SparseToDenseAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "indices"));
  ONCILLA_TRY(RequireInteger(in[1], "shape"));
  if (in[2].dtype != in[3].dtype) {
    return InvalidArgument("values are ", in[2].dtype, " and the default ", in[3].dtype);
  }
  const auto sizes = KnownInts(in[1]);
  if (!sizes.has_value()) return Facts{Fact::Of(in[2].dtype, PartialShape())};
  if (sizes->size() > kMaxRank) return Unsupported("rank ", sizes->size());
  if (in[1].has_value()) {
    ONCILLA_ASSIGN(const auto values, NeedInts(in[1], "shape"));
    for (int64_t v : values) {
      if (v < 0) return InvalidArgument("shape contains ", v);
    }
  }
  return Facts{Fact::Of(in[2].dtype, PartialShape(*sizes))};
}

// Checks the triple (indices, values, shape) of a sparse tensor.
Status RequireSparse(const Fact& indices, const Fact* values, const Fact& shape) {
  ONCILLA_TRY(RequireInteger(indices, "indices"));
  ONCILLA_TRY(RequireRank(indices, 2, "indices"));
  ONCILLA_TRY(RequireInteger(shape, "shape"));
  ONCILLA_TRY(RequireRank(shape, 1, "shape"));
  if (values == nullptr) return Status();
  ONCILLA_TRY(RequireRank(*values, 1, "values"));
  const Dim rows = indices.shape.ranked() ? indices.shape[0] : Dim(), count = SizeOf(*values);
  if (rows.known() && count.known() && rows.size != count.size) {
    return InvalidArgument("there are ", rows.size, " indices for ", count.size, " values");
  }
  return Status();
}

Result<Facts> InferSparseReshape(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], nullptr, in[1]));
  ONCILLA_TRY(RequireInteger(in[2], "the new shape"));
  ONCILLA_TRY(RequireRank(in[2], 1, "the new shape"));
  const Dim rows = in[0].shape.ranked() ? in[0].shape[0] : Dim();
  return Facts{Ints(PartialShape({rows, SizeOf(in[2])})), Ints(List(SizeOf(in[2])))};
}

Result<Facts> InferSparseReorder(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  return Facts{Fact::Of(in[0].dtype, in[0].shape), Fact::Of(in[1].dtype, in[1].shape)};
}

Result<Facts> InferSparseFill(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  if (in[3].dtype != in[1].dtype) {
    return InvalidArgument("values are ", in[1].dtype, " and the default ", in[3].dtype);
  }
  const auto sizes = KnownInts(in[2]);
  const Dim rows = sizes.has_value() && !sizes->empty() ? (*sizes)[0] : Dim();
  return Facts{Ints(PartialShape({Dim(), RankOf(in[0])})), Fact::Of(in[1].dtype, List()),
               Fact::Of(DType::kBool, List(rows)),
               Ints(List(in[0].shape.ranked() ? in[0].shape[0] : Dim()))};
}

Result<Facts> InferRaggedRange(const RaggedRangeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "starts"));
  ONCILLA_TRY(RequireSameDType(in));
  for (const Fact& fact : in) {
    if (fact.shape.ranked() && fact.shape.rank() > 1) {
      return InvalidArgument("starts, limits and deltas are numbers or lists, not ", fact.shape);
    }
  }
  return Facts{Fact::Of(attrs.splits, List()), Fact::Of(in[0].dtype, List())};
}

Result<Facts> InferRaggedGather(const RaggedGatherAttrs& attrs, std::span<const Fact> in) {
  if (attrs.ragged_rank < 1 || attrs.ragged_rank + 2 != static_cast<int64_t>(in.size()) ||
      attrs.index_rank < 0 || attrs.index_rank > kMaxRank) {
    return InvalidArgument("ragged_rank is ", attrs.ragged_rank, " for ", in.size(), " inputs");
  }
  ONCILLA_TRY(RequireInteger(in.back(), "indices"));
  ONCILLA_TRY(RequireRank(in.back(), static_cast<int>(attrs.index_rank), "indices"));
  Facts out;
  const int64_t splits = attrs.ragged_rank + attrs.index_rank - 1;
  for (int64_t i = 0; i < splits; ++i) out.push_back(Fact::Of(in[0].dtype, List()));
  const Fact& values = in[in.size() - 2];
  PartialShape shape = values.shape;
  if (shape.ranked()) {
    if (shape.rank() == 0) return InvalidArgument("the values have no first axis");
    shape[0] = Dim();
  }
  out.push_back(Fact::Of(values.dtype, std::move(shape)));
  return out;
}

Result<Facts> InferRaggedToDense(const RaggedToDenseAttrs& attrs, std::span<const Fact> in) {
  if (attrs.types.size() + 3 != in.size() || attrs.types.empty()) {
    return InvalidArgument("there are ", in.size() - 3, " partitions of ", attrs.types.size(),
                           " types");
  }
  for (size_t i = 0; i < attrs.types.size(); ++i) {
    const std::string& type = attrs.types[i];
    if (type != "row_splits" && type != "value_rowids" && (type != "first_dim_size" || i != 0)) {
      return InvalidArgument("partition ", i, " of type '", type, "'");
    }
    ONCILLA_TRY(RequireInteger(in[3 + i], "a partition"));
  }
  if (attrs.types[0] == "value_rowids") {
    return InvalidArgument("value_rowids without first_dim_size");
  }
  ONCILLA_TRY(RequireInteger(in[0], "shape"));
  if (in[1].dtype != in[2].dtype) {
    return InvalidArgument("values are ", in[1].dtype, " and the default ", in[2].dtype);
  }
  const PartialShape& values = in[1].shape;
  if (!values.ranked()) return Facts{Fact::Of(in[1].dtype, PartialShape())};
  if (values.rank() == 0) return InvalidArgument("the values have no first axis");
  const int ragged =
      static_cast<int>(attrs.types.size()) - (attrs.types[0] == "first_dim_size" ? 1 : 0);
  std::vector<Dim> dims(static_cast<size_t>(ragged) + 1);
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size());
  if (in[0].shape.ranked() && in[0].shape.rank() == 1) {
    const auto asked = ReadKnownInts(in[0]);
    if (asked.has_value()) {
      if (asked->size() != dims.size()) {
        return InvalidArgument("shape has ", asked->size(), " sizes for rank ", dims.size());
      }
      for (size_t i = 0; i <= static_cast<size_t>(ragged); ++i) {
        if (const auto v = (*asked)[i].value; v.has_value() && *v >= 0) dims[i] = Dim(*v);
      }
    }
  }
  return Facts{Fact::Of(in[1].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferSparseConcat(const SparseConcatAttrs& attrs, std::span<const Fact> in) {
  if (attrs.parts < 1 || attrs.parts * 3 != static_cast<int64_t>(in.size())) {
    return InvalidArgument("there are ", in.size(), " inputs for ", attrs.parts, " parts");
  }
  const auto parts = static_cast<size_t>(attrs.parts);
  for (size_t i = 0; i < parts; ++i) {
    ONCILLA_TRY(RequireSparse(in[i], &in[parts + i], in[2 * parts + i]));
    if (in[parts + i].dtype != in[parts].dtype) return InvalidArgument("values differ in dtype");
  }
  return Facts{Ints(PartialShape({Dim(), RankOf(in[0])})), Fact::Of(in[parts].dtype, List()),
               Ints(List(SizeOf(in[2 * parts])))};
}

Result<Facts> InferSparseSlice(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  for (size_t i : {3, 4}) {
    ONCILLA_TRY(RequireInteger(in[i], "start and size"));
    ONCILLA_TRY(RequireRank(in[i], 1, "start and size"));
  }
  return Facts{Ints(PartialShape({Dim(), RankOf(in[0])})), Fact::Of(in[1].dtype, List()),
               Ints(List(SizeOf(in[2])))};
}

Result<Facts> InferSparseSoftmax(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  ONCILLA_TRY(RequireFloat(in[1], "values"));
  return Facts{Fact::Of(in[1].dtype, in[1].shape)};
}

Result<Facts> InferEditDistance(const EditDistanceAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  ONCILLA_TRY(RequireSparse(in[3], &in[4], in[5]));
  if (in[1].dtype != in[4].dtype) {
    return InvalidArgument("the values are ", in[1].dtype, " and ", in[4].dtype);
  }
  const Dim first = RankOf(in[0]), second = RankOf(in[3]);
  if (first.known() && second.known() && first.size != second.size) {
    return InvalidArgument("the tensors are not of one rank: ", first.size, " and ", second.size);
  }
  const Dim rank = first.known() ? first : second;
  if (rank.known() && rank.size < 1) return InvalidArgument("the tensors have no last axis");
  if (!rank.known() || rank.size > kMaxRank) {
    return Facts{Fact::Of(DType::kF32, PartialShape())};
  }
  return Facts{Fact::Of(DType::kF32, PartialShape::OfRank(static_cast<int>(rank.size) - 1))};
}

Result<Facts> InferRaggedToSparse(const NoAttrs&, std::span<const Fact> in) {
  Dim rank;
  for (const Fact& fact : in.first(in.size() - 1)) {
    ONCILLA_TRY(RequireInteger(fact, "splits"));
    ONCILLA_TRY(RequireRank(fact, 1, "splits"));
  }
  const PartialShape& values = in.back().shape;
  if (values.ranked()) {
    if (values.rank() == 0) return InvalidArgument("the values have no first axis");
    rank = Dim(values.rank() + static_cast<int64_t>(in.size()) - 1);
  }
  const Dim count = values.elements();
  return Facts{Ints(PartialShape({count, rank})), Fact::Of(in.back().dtype, List(count)),
               Ints(List(rank))};
}

Result<Facts> InferListDiff(const ListDiffAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSameDType(in));
  for (const Fact& fact : in) ONCILLA_TRY(RequireRank(fact, 1, "x and y"));
  return Facts{Fact::Of(in[0].dtype, List()), Fact::Of(attrs.to, List())};
}

// Checks that x starts with the axes of `number`; returns the remaining axes of x.
Result<PartialShape> Behind(const PartialShape& x, const PartialShape& number) {
  if (!x.ranked() || !number.ranked()) return PartialShape();
  bool fits = number.rank() <= x.rank();
  for (int i = 0; fits && i < number.rank(); ++i) {
    fits = !x[i].known() || !number[i].known() || x[i].size == number[i].size;
  }
  if (!fits) return InvalidArgument("data ", x, " must start with the shape ", number);
  std::vector<Dim> dims = {Dim()};
  dims.insert(dims.end(), x.dims().begin() + number.rank(), x.dims().end());
  return PartialShape(std::move(dims));
}

Result<Facts> InferDynamicPartition(const DynamicPartitionAttrs& attrs, std::span<const Fact> in) {
  if (attrs.parts < 1 || attrs.parts > (1 << 20)) return InvalidArgument("parts is ", attrs.parts);
  ONCILLA_TRY(RequireInteger(in[1], "partitions"));
  ONCILLA_ASSIGN(const PartialShape shape, Behind(in[0].shape, in[1].shape));
  return Facts(static_cast<size_t>(attrs.parts), Fact::Of(in[0].dtype, shape));
}

Result<Facts> InferDynamicStitch(const DynamicStitchAttrs& attrs, std::span<const Fact> in) {
  const int64_t inputs = std::ssize(in);
  if (attrs.parts < 1 || attrs.parts > inputs || attrs.parts * 2 != inputs) {
    return InvalidArgument("there are ", in.size(), " inputs for ", attrs.parts, " parts");
  }
  const auto parts = static_cast<size_t>(attrs.parts);
  PartialShape shape;
  int64_t rows = 0;
  bool known = true;
  for (size_t i = 0; i < parts; ++i) {
    ONCILLA_TRY(RequireInteger(in[i], "indices"));
    if (in[parts + i].dtype != in[parts].dtype) return InvalidArgument("data differ in dtype");
    ONCILLA_ASSIGN(const PartialShape one, Behind(in[parts + i].shape, in[i].shape));
    ONCILLA_ASSIGN(shape, MergeShapes(shape, one));
    known = known && in[i].has_value();
    if (!known) continue;
    ONCILLA_ASSIGN(const auto values, ToInt64s(in[i].value));
    for (int64_t v : values) rows = std::max(rows, SaturatingAdd(v, 1));
  }
  if (shape.ranked() && known) shape[0] = Dim(rows);
  return Facts{Fact::Of(in[parts].dtype, std::move(shape))};
}

Result<Facts> InferInvert(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "x"));
  ONCILLA_TRY(RequireRank(in[0], 1, "x"));
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferUnravel(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "indices"));
  ONCILLA_TRY(RequireInteger(in[1], "sizes"));
  ONCILLA_TRY(RequireRank(in[1], 1, "sizes"));
  if (!in[0].shape.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  std::vector<Dim> dims = {SizeOf(in[1])};
  dims.insert(dims.end(), in[0].shape.dims().begin(), in[0].shape.dims().end());
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

// The broadcast of two shapes that are given as values, as far as it is known.
Result<Facts> InferBroadcastSizes(const NoAttrs&, std::span<const Fact> in) {
  for (const Fact& fact : in) {
    ONCILLA_TRY(RequireInteger(fact, "a shape"));
    ONCILLA_TRY(RequireRank(fact, 1, "a shape"));
  }
  ONCILLA_TRY(RequireSameDType(in));
  const Dim a = SizeOf(in[0]), b = SizeOf(in[1]);
  const Dim rank = a.known() && b.known() ? Dim(std::max(a.size, b.size)) : Dim();
  Fact out = Fact::Of(in[0].dtype, List(rank));
  const auto x = KnownInts(in[0]), y = KnownInts(in[1]);
  if (!x.has_value() || !y.has_value()) return Facts{std::move(out)};
  ONCILLA_ASSIGN(const PartialShape shape, BroadcastShapes(PartialShape(*x), PartialShape(*y)));
  return Facts{WithCarried(std::move(out), shape.dims())};
}

// Facts for (indices, values, shape) if only the rank is known.
Facts SparseFacts(DType dtype, const Dim& rank) {
  return {Ints(PartialShape({Dim(), rank})), Fact::Of(dtype, List()), Ints(List(rank))};
}

Result<Facts> InferSparseAdd(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  ONCILLA_TRY(RequireSparse(in[3], &in[4], in[5]));
  ONCILLA_TRY(RequireNumber(in[1], "values"));
  if (in[4].dtype != in[1].dtype || in[6].dtype != in[1].dtype) {
    return InvalidArgument("the operands are ", in[1].dtype, " and ", in[4].dtype,
                           ", the threshold ", in[6].dtype);
  }
  return SparseFacts(in[1].dtype, RankOf(in[0]));
}

Result<Facts> InferSparsePick(const SparsePickAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  ONCILLA_TRY(RequireSparse(in[3], &in[4], in[5]));
  ONCILLA_TRY(RequireNumber(in[1], "values"));
  if (in[4].dtype != in[1].dtype) {
    return InvalidArgument("the operands are ", in[1].dtype, " and ", in[4].dtype);
  }
  return SparseFacts(in[1].dtype, RankOf(in[0]));
}

Result<Facts> InferSparseLookup(const SparseLookupAttrs&, std::span<const Fact> in) {
  for (const size_t i : {0, 2}) {
    ONCILLA_TRY(RequireInteger(in[i], i == 0 ? "indices" : "wanted indices"));
    ONCILLA_TRY(RequireRank(in[i], 2, i == 0 ? "indices" : "wanted indices"));
  }
  ONCILLA_TRY(RequireNumber(in[1], "values"));
  ONCILLA_TRY(RequireRank(in[1], 1, "values"));
  const Dim entries = in[0].shape.ranked() ? in[0].shape[0] : Dim(), count = SizeOf(in[1]);
  if (entries.known() && count.known() && entries.size != count.size) {
    return InvalidArgument("there are ", entries.size, " indices for ", count.size, " values");
  }
  const Dim own = RankOf(in[0]), wanted = RankOf(in[2]);
  if (own.known() && wanted.known() && own.size != wanted.size) {
    return InvalidArgument("indices of ", own.size, " axes, and wanted ones of ", wanted.size);
  }
  return Facts{Fact::Of(in[1].dtype, List(in[2].shape.ranked() ? in[2].shape[0] : Dim()))};
}

Result<Facts> InferSparseSplit(const SparseSplitAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "the axis"));
  ONCILLA_TRY(RequireSparse(in[1], &in[2], in[3]));
  if (attrs.parts < 1 || attrs.parts > (1 << 20)) return InvalidArgument("parts is ", attrs.parts);
  const Facts one = SparseFacts(in[2].dtype, RankOf(in[1]));
  Facts out;
  for (const Fact& fact : one) out.insert(out.end(), static_cast<size_t>(attrs.parts), fact);
  return out;
}

Result<Facts> InferSparseReduce(const SparseReduceAttrs& attrs, std::span<const Fact> in) {
  if (attrs.reduction != "sum" && attrs.reduction != "max") {
    return InvalidArgument("there is no reduction '", attrs.reduction, "'");
  }
  ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
  ONCILLA_TRY(RequireNumber(in[1], "values"));
  ONCILLA_TRY(RequireInteger(in[3], "axes"));
  return SparseFacts(in[1].dtype, attrs.keep_dims ? RankOf(in[0]) : Dim());
}

// Checks an operand of a set operation, and sets its rank if it is known.
Status RequireSets(std::span<const Fact> in, bool dense, Dim* rank) {
  if (!dense) {
    ONCILLA_TRY(RequireSparse(in[0], &in[1], in[2]));
    const Dim axes = RankOf(in[0]), sizes = SizeOf(in[2]);
    if (axes.known() && sizes.known() && axes.size != sizes.size) {
      return InvalidArgument("indices of ", axes.size, " axes for a shape of ", sizes.size);
    }
    *rank = axes.known() ? axes : sizes;
  } else if (in[0].shape.ranked()) {
    *rank = Dim(in[0].shape.rank());
  }
  const DType dtype = in[dense ? 0 : 1].dtype;
  if (dtype != DType::kString && !IsInteger(dtype)) return InvalidArgument("sets of ", dtype);
  if (!rank->known() || rank->size >= 2) return Status();
  return InvalidArgument("Invalid rank ", rank->size, ": sets need at least two axes");
}

Result<Facts> InferSetOperation(const SetOperationAttrs& attrs, std::span<const Fact> in) {
  const std::string& operation = attrs.operation;
  if (operation != "union" && operation != "intersection" && operation != "a-b" &&
      operation != "b-a") {
    return InvalidArgument("Invalid set_operation ", operation);
  }
  const size_t first = attrs.dense_first ? 1 : 3, second = attrs.dense_second ? 1 : 3;
  if (in.size() != first + second) {
    return InvalidArgument(in.size(), " inputs instead of ", first + second);
  }
  Dim rank, other;
  ONCILLA_TRY(RequireSets(in.first(first), attrs.dense_first, &rank));
  ONCILLA_TRY(RequireSets(in.subspan(first), attrs.dense_second, &other));
  const DType dtype = in[attrs.dense_first ? 0 : 1].dtype;
  if (in[first + (attrs.dense_second ? 0 : 1)].dtype != dtype) {
    return InvalidArgument("the operands differ in dtype");
  }
  if (rank.known() && other.known() && rank.size != other.size) {
    return InvalidArgument("the operands have ", rank.size, " and ", other.size, " axes");
  }
  return SparseFacts(dtype, rank.known() ? rank : other);
}

Result<Facts> InferSetSize(const SetSizeAttrs&, std::span<const Fact> in) {
  Dim rank;
  ONCILLA_TRY(RequireSets(in, false, &rank));
  if (!rank.known()) return Facts{Fact::Of(DType::kI32, PartialShape())};
  if (rank.size - 1 > kMaxRank) return Unsupported("rank ", rank.size);
  return Facts{Fact::Of(DType::kI32, PartialShape::OfRank(static_cast<int>(rank.size) - 1))};
}

// Columns of i64 or strings, each with two axes.
Result<Facts> InferFeatureCross(const FeatureCrossAttrs& attrs, std::span<const Fact> in) {
  const int64_t count = std::ssize(in);
  if (attrs.sparse < 0 || attrs.sparse > count / 3 || attrs.buckets < 0) {
    return InvalidArgument(attrs.sparse, " sparse columns of ", count, " inputs, ", attrs.buckets,
                           " buckets");
  }
  const auto sparse = static_cast<size_t>(attrs.sparse);
  for (size_t i = 0; i < in.size(); ++i) {
    const bool values = i >= sparse && i < 2 * sparse, dense = i >= 3 * sparse;
    if (dense && in[i].shape.ranked() && in[i].shape.rank() != 2) {
      return InvalidArgument("a dense column ", in[i], " instead of one with two axes");
    }
    if (i < sparse) ONCILLA_TRY(RequireSparse(in[i], &in[sparse + i], in[2 * sparse + i]));
    if ((values || dense) && in[i].dtype != DType::kI64 && in[i].dtype != DType::kString) {
      return Unsupported("features of ", in[i].dtype);
    }
  }
  return SparseFacts(attrs.hashed ? DType::kI64 : DType::kString, Dim(2));
}

constexpr OpTraits Host(int least, int most) {
  return {.inputs = {least, most}, .host_only = true};
}
constexpr OpTraits Dependent(int least, int most) {
  return {.inputs = {least, most}, .host_only = true, .data_dependent = true};
}

constexpr OpDef kSparseOps[] = {
    Op<InferSparseToDense>("SparseToDense",
                           {.inputs = {4, 4}, .plan_inputs = 0b10, .host_only = true}),
    Op<InferSparseReshape>("SparseReshape", Dependent(3, 3)),
    Op<InferSparseReorder>("SparseReorder", Host(3, 3)),
    Op<InferSparseFill>("SparseFillEmptyRows", Dependent(4, 4)),
    Op<InferSparseConcat>("SparseConcat", Dependent(3, kVariadic)),
    Op<InferSparseSlice>("SparseSlice", Dependent(5, 5)),
    Op<InferSparseSoftmax>("SparseSoftmax", Host(3, 3)),
    Op<InferSparseAdd>("SparseAdd", Dependent(7, 7)),
    Op<InferSparsePick>("SparsePick", Dependent(6, 6)),
    Op<InferSparseLookup>("SparseLookup", Host(3, 3)),
    Op<InferSparseSplit>("SparseSplit", Dependent(4, 4)),
    Op<InferSparseReduce>("SparseReduce", Dependent(4, 4)),
    Op<InferSetOperation>("SetOperation", Dependent(2, 6)),
    Op<InferSetSize>("SetSize", Dependent(3, 3)),
    Op<InferFeatureCross>("FeatureCross", Dependent(1, kVariadic)),
    Op<InferEditDistance>("EditDistance", Dependent(6, 6)),
    Op<InferRaggedToSparse>("RaggedToSparse", Dependent(2, kVariadic)),
    Op<InferRaggedRange>("RaggedRange", Dependent(3, 3)),
    Op<InferRaggedGather>("RaggedGather", Dependent(3, kVariadic)),
    Op<InferRaggedToDense>("RaggedToDense", Dependent(4, kVariadic)),
    Op<InferListDiff>("ListDiff", Dependent(2, 2)),
    Op<InferDynamicPartition>("DynamicPartition", Dependent(2, 2)),
    Op<InferDynamicStitch>("DynamicStitch", Dependent(2, kVariadic)),
    Op<InferInvert>("InvertPermutation", Host(1, 1)),
    Op<InferUnravel>("UnravelIndex", Dependent(2, 2)),
    Op<InferBroadcastSizes>("BroadcastSizes", Dependent(2, 2)),
};

}  // namespace

std::span<const OpDef> SparseOps() { return kSparseOps; }

}  // namespace oncilla
