// TensorFlow's sparse and ragged tensors, and ops that partition elements.
#include <cmath>

#include "engine/import/tf/ops/formula.h"
#include "engine/ops/array/sets.h"

namespace oncilla {
namespace {

Result<Values> LowerSparseToDense(TfLowering& b) {
  ONCILLA_ASSIGN(const bool validate, b.attrs().Bool("validate_indices"));
  return One(b.Add(SparseToDenseAttrs{.validate = validate}, b.all_inputs()));
}

template <const char* kCanonical>
Result<Values> LowerSame(TfLowering& b) {
  return b.AddAll(kCanonical, {}, b.all_inputs());
}
constexpr char kReshape[] = "SparseReshape", kReorder[] = "SparseReorder";
constexpr char kSoftmax[] = "SparseSoftmax", kToSparse[] = "RaggedToSparse";
constexpr char kFill[] = "SparseFillEmptyRows", kSlice[] = "SparseSlice", kAdd[] = "SparseAdd";

// The larger or smaller value of two sparse tensors at each place; the shape is that of both.
Result<Values> LowerSparsePick(TfLowering& b) {
  const SparsePickAttrs attrs = {.smaller = b.op() == "SparseSparseMinimum"};
  ONCILLA_ASSIGN(const Values all, b.AddAll("SparsePick", attrs, b.all_inputs()));
  return Values{all[0], all[1]};
}

// Inputs: the gradient of a sum's values, and the indices of both operands and of the sum.
Result<Values> LowerSparseAddGrad(TfLowering& b) {
  const SparseLookupAttrs attrs;
  ONCILLA_ASSIGN(const ValueId x, b.Add("SparseLookup", attrs, {b.in(3), b.in(0), b.in(1)}, "a"));
  ONCILLA_ASSIGN(const ValueId y, b.Add("SparseLookup", attrs, {b.in(3), b.in(0), b.in(2)}, "b"));
  return Values{x, y};
}

// Inputs: the gradient of a slice's values, the indices of the whole, where the slice starts, and
// the indices of the slice.
Result<Values> LowerSparseSliceGrad(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Sub", {}, {b.in(1), b.in(2)}, "moved"));
  return One(b.Add("SparseLookup", SparseLookupAttrs{.complete = true}, {b.in(3), b.in(0), moved}));
}

Result<Values> LowerSparseConcat(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("concat_dim"));
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("N"));
  return b.AddAll(SparseConcatAttrs{.axis = axis, .parts = parts}, b.all_inputs());
}

Result<Values> LowerRaggedRange(TfLowering& b) {
  ONCILLA_ASSIGN(const DType splits, b.attrs().Type("Tsplits"));
  return b.AddAll(RaggedRangeAttrs{.splits = splits}, b.all_inputs());
}

Result<Values> LowerRaggedGather(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t rank, b.attrs().Int("PARAMS_RAGGED_RANK"));
  ONCILLA_ASSIGN(const int64_t result_rank, b.attrs().Int("OUTPUT_RAGGED_RANK"));
  return b.AddAll(RaggedGatherAttrs{.ragged_rank = rank, .index_rank = result_rank - rank + 1},
                  b.all_inputs());
}

Result<Values> LowerRaggedToDense(TfLowering& b) {
  ONCILLA_ASSIGN(std::vector<std::string> types, b.attrs().Strings("row_partition_types"));
  for (std::string& type : types) {
    for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return One(b.Add(RaggedToDenseAttrs{.types = std::move(types)}, b.all_inputs()));
}

Result<Values> LowerListDiff(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_idx"));
  return b.AddAll(ListDiffAttrs{.to = to}, b.all_inputs());
}

Result<Values> LowerDynamicPartition(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("num_partitions"));
  return b.AddAll(DynamicPartitionAttrs{.parts = parts}, b.all_inputs());
}

Result<Values> LowerDynamicStitch(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("N"));
  return One(b.Add(DynamicStitchAttrs{.parts = parts}, b.all_inputs()));
}

// Without an axis, TensorFlow accepts only lists.
Result<ValueId> RequireList(TfLowering& b) {
  const PartialShape& shape = b.in_fact(0).shape;
  if (!shape.ranked()) return b.Add(EnsureShapeAttrs{.dims = {-1}}, {b.in(0)}, "list");
  if (shape.rank() == 1) return b.in(0);
  return InvalidArgument("unique expects a 1D vector, not ", shape);
}

// Unique elements in order of appearance; indices and counts have the type that the op states.
Result<Values> LowerUnique(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_idx"));
  UniqueAttrs attrs = {.sorted = false, .equal_nans = false};
  ValueId x = b.in(0);
  if (b.op() == "UniqueV2" || b.op() == "UniqueWithCountsV2") {
    ONCILLA_ASSIGN(const std::vector<int64_t> axis, b.KnownInts(1, "the axis"));
    if (axis.size() > 1) return InvalidArgument("axis does not support input of ", axis.size());
    if (axis.size() == 1) {
      attrs.axis = axis[0];
    } else {
      ONCILLA_ASSIGN(x, RequireList(b));
    }
  } else {
    ONCILLA_ASSIGN(x, RequireList(b));
  }
  ONCILLA_ASSIGN(const Values found, b.AddAll(attrs, {x}, "unique"));
  Values out = {found[0]};
  for (const size_t i : {2, 3}) {
    if (i == 3 && b.op().find("Counts") == std::string_view::npos) break;
    ValueId list = found[i];
    ONCILLA_ASSIGN(list, b.Cast(list, to, i == 2 ? "indices" : "counts"));
    out.push_back(list);
  }
  return out;
}

Result<Values> LowerEditDistance(TfLowering& b) {
  ONCILLA_ASSIGN(const bool normalize, b.attrs().Bool("normalize"));
  return One(b.Add(EditDistanceAttrs{.normalize = normalize}, b.all_inputs()));
}

// The tensor is made dense first, since the result is dense anyway.
Result<Values> LowerSparseSum(TfLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(1).dtype, 0));
  ONCILLA_ASSIGN(const ValueId zeros, b.Add("Fill", {}, {b.in(2), zero}, "zeros"));
  ONCILLA_ASSIGN(const ValueId dense,
                 b.Add(ScatterNDAttrs{.reduction = "add", .negative_indices = false},
                       {zeros, b.in(0), b.in(1)}, "dense"));
  return One(b.Add("ReduceSum", ReduceAttrs{.keep_dims = keep_dims, .empty_axes_is_all = false},
                   {dense, b.in(3)}));
}

// The maximum over the values that exist; zero where there are none.
Result<Values> LowerSparseMax(TfLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  const DType dtype = b.dtype(1);
  const ReduceAttrs reduce = {.keep_dims = keep_dims, .empty_axes_is_all = false};
  const ScatterNDAttrs add = {.reduction = "add", .negative_indices = false};
  const ScatterNDAttrs most = {.reduction = "max", .negative_indices = false};
  double least = -INFINITY;
  if (IsInteger(dtype)) {
    least = IsSigned(dtype) ? -std::ldexp(1.0, static_cast<int>(8 * BytesOf(dtype) - 1)) : 0;
  }
  TfFormula f(b);
  const ValueId lowest = f("Fill", {b.in(2), f.Number(dtype, least)});
  const ValueId dense = f(most, {lowest, b.in(0), b.in(1)});
  const ValueId largest = f("ReduceMax", reduce, {dense, b.in(3)});
  const ValueId none = f("Fill", {b.in(2), f.Number(DType::kI32, 0)});
  const ValueId ones = f("Fill", {f("Shape", {b.in(1)}), f.Number(DType::kI32, 1)});
  const ValueId there = f("ReduceSum", reduce, {f(add, {none, b.in(0), ones}), b.in(3)});
  const ValueId any = f("Greater", {there, f.Number(DType::kI32, 0)});
  return f.Last("Where", {any, largest, f.Number(dtype, 0)});
}

Result<Values> LowerSparsePlusDense(TfLowering& b) {
  return One(b.Add(ScatterNDAttrs{.reduction = "add", .negative_indices = false},
                   {b.in(3), b.in(0), b.in(1)}));
}

// Combines the sparse values with the dense values at their positions, after the dense tensor has
// been broadcast to the sparse shape.
Result<Values> LowerSparseWithDense(TfLowering& b) {
  std::string_view op = b.op();
  op.remove_prefix(std::string_view("SparseDenseCwise").size());
  ONCILLA_ASSIGN(const ValueId wide, b.Add("Expand", {}, {b.in(3), b.in(2)}, "wide"));
  ONCILLA_ASSIGN(const ValueId dense,
                 b.Add(GatherNDAttrs{.negative_indices = false}, {wide, b.in(0)}, "dense"));
  return One(b.Add(op, {}, {b.in(1), dense}));
}

Result<Values> LowerSparseSplit(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t parts, b.attrs().Int("num_split"));
  return b.AddAll("SparseSplit", SparseSplitAttrs{parts}, b.all_inputs());
}

Result<Values> LowerSparseReduce(TfLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  const std::string reduction = b.op() == "SparseReduceSumSparse" ? "sum" : "max";
  return b.AddAll("SparseReduce", SparseReduceAttrs{.reduction = reduction, .keep_dims = keep_dims},
                  b.all_inputs());
}

Result<Values> LowerSetOperation(TfLowering& b) {
  SetOperationAttrs attrs;
  ONCILLA_ASSIGN(attrs.operation, b.attrs().String("set_operation"));
  ONCILLA_ASSIGN(attrs.validate, b.attrs().Bool("validate_indices"));
  for (char& c : attrs.operation) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  attrs.dense_first = b.op().substr(0, 5) == "Dense";
  attrs.dense_second = b.op() == "DenseToDenseSetOperation";
  return b.AddAll("SetOperation", attrs, b.all_inputs());
}

// Combinations of features. The inputs are all indices, then all values, then all shapes, then the
// dense columns.
Result<Values> LowerSparseCross(TfLowering& b) {
  FeatureCrossAttrs attrs;
  ONCILLA_ASSIGN(attrs.sparse, b.attrs().Int("N"));
  Values inputs = b.all_inputs();
  if (b.op() == "SparseCrossV2") {
    const Fact& separator = b.in_fact(b.inputs() - 1);
    if (!separator.has_value() || separator.value.dtype() != DType::kString ||
        separator.value.elements() != 1) {
      return Unsupported("its separator is not known");
    }
    attrs.hashed = false;
    attrs.separator = separator.value.strings()[0];
    inputs.pop_back();
  } else {
    ONCILLA_ASSIGN(attrs.hashed, b.attrs().Bool("hashed_output"));
    ONCILLA_ASSIGN(attrs.buckets, b.attrs().Int("num_buckets"));
    ONCILLA_ASSIGN(attrs.key, b.attrs().Int("hash_key"));
    attrs.separator = "_X_";
  }
  if (attrs.sparse < 0 || std::ssize(inputs) < 3 * attrs.sparse || inputs.empty()) {
    return DataLoss("has ", inputs.size(), " inputs for ", attrs.sparse, " sparse columns");
  }
  return b.AddAll("FeatureCross", attrs, std::move(inputs));
}

Result<Values> LowerSetSize(TfLowering& b) {
  ONCILLA_ASSIGN(const bool validate, b.attrs().Bool("validate_indices"));
  return One(b.Add("SetSize", SetSizeAttrs{validate}, b.all_inputs()));
}

constexpr TfOpRow kRows[] = {
    {"BroadcastArgs", 2, "BroadcastSizes"},
    {"DenseToDenseSetOperation", 2, "", LowerSetOperation},
    {"DenseToSparseSetOperation", 4, "", LowerSetOperation},
    {"DynamicPartition", 2, "", LowerDynamicPartition},
    {"DynamicStitch", 2, "", LowerDynamicStitch},
    {"EditDistance", 6, "", LowerEditDistance},
    {"InvertPermutation", 1, "InvertPermutation"},
    {"ListDiff", 2, "", LowerListDiff},
    {"ParallelDynamicStitch", 2, "", LowerDynamicStitch},
    {"RaggedGather", 3, "", LowerRaggedGather},
    {"RaggedRange", 3, "", LowerRaggedRange},
    {"RaggedTensorToSparse", 2, "", LowerSame<kToSparse>},
    {"RaggedTensorToTensor", 4, "", LowerRaggedToDense},
    {"SetSize", 3, "", LowerSetSize},
    {"SparseAdd", 7, "", LowerSame<kAdd>},
    {"SparseAddGrad", 4, "", LowerSparseAddGrad},
    {"SparseConcat", 3, "", LowerSparseConcat},
    {"SparseCross", 1, "", LowerSparseCross},
    {"SparseCrossV2", 1, "", LowerSparseCross},
    {"SparseDenseCwiseAdd", 4, "", LowerSparseWithDense},
    {"SparseDenseCwiseDiv", 4, "", LowerSparseWithDense},
    {"SparseDenseCwiseMul", 4, "", LowerSparseWithDense},
    {"SparseFillEmptyRows", 4, "", LowerSame<kFill>},
    {"SparseReduceMax", 4, "", LowerSparseMax},
    {"SparseReduceMaxSparse", 4, "", LowerSparseReduce},
    {"SparseReduceSum", 4, "", LowerSparseSum},
    {"SparseReduceSumSparse", 4, "", LowerSparseReduce},
    {"SparseReorder", 3, "", LowerSame<kReorder>},
    {"SparseReshape", 3, "", LowerSame<kReshape>},
    {"SparseSlice", 5, "", LowerSame<kSlice>},
    {"SparseSliceGrad", 4, "", LowerSparseSliceGrad},
    {"SparseSoftmax", 3, "", LowerSame<kSoftmax>},
    {"SparseSparseMaximum", 6, "", LowerSparsePick},
    {"SparseSparseMinimum", 6, "", LowerSparsePick},
    {"SparseSplit", 4, "", LowerSparseSplit},
    {"SparseTensorDenseAdd", 4, "", LowerSparsePlusDense},
    {"SparseToDense", 4, "", LowerSparseToDense},
    {"SparseToSparseSetOperation", 6, "", LowerSetOperation},
    {"Unique", 1, "", LowerUnique},
    {"UniqueV2", 2, "", LowerUnique},
    {"UniqueWithCounts", 1, "", LowerUnique},
    {"UniqueWithCountsV2", 2, "", LowerUnique},
    {"UnravelIndex", 2, "UnravelIndex"},
};

}  // namespace

std::span<const TfOpRow> TfSparseRows() { return kRows; }

}  // namespace oncilla
