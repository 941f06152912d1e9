// TFLite's shapes, ranges, gathers, scatters and segments.
#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

Result<Values> LowerShape(TfliteLowering& b) {
  b.Ignore(0);  // the output's type decides
  return One(b.Add(ShapeAttrs{.to = b.output_type()}, {b.in(0)}));
}

Result<Values> LowerRank(TfliteLowering& b) {
  return One(b.Add(RankAttrs{.to = DType::kI32}, {b.in(0)}));
}

Result<Values> LowerGather(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int(0));
  ONCILLA_ASSIGN(int64_t batch_dims, b.Int(1));
  if (batch_dims < 0) {
    ONCILLA_ASSIGN(const int rank, b.Rank(1, "the indices"));
    batch_dims += rank;
  }
  return One(b.Add(GatherAttrs{.axis = axis, .batch_dims = batch_dims, .negative_indices = false},
                   {b.in(0), b.in(1)}));
}

// Looks up rows of 8-bit numbers as real numbers; each row may have its own scale.
Result<Values> LowerQuantisedLookup(TfliteLowering& b) {
  if (b.output_type() != DType::kF32 || b.dtype(1) != DType::kI8) {
    ONCILLA_TRY(b.CheckMoved());
    return One(b.Add(GatherAttrs{.negative_indices = false}, {b.in(1), b.in(0)}));
  }
  const TfliteQuantization& q = b.tensor(1).quantization;
  const auto rank = std::ssize(b.tensor(1).shape);
  if (q.block == 0) ONCILLA_TRY(CheckTfliteHybrid(b, 1));
  const GatherAttrs attrs = {.negative_indices = false};
  ONCILLA_ASSIGN(const ValueId rows, b.Add(attrs, {b.in(1), b.in(0)}, "rows"));
  if (q.block != 0) return One(TfliteBlocksDequantised(b, 1, rows, b.in(0), ""));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(rows, DType::kF32, "real"));
  if (q.scale.size() == 1) {
    ONCILLA_ASSIGN(const ValueId scale, b.Scalar(DType::kF32, double{q.scale[0]}));
    return One(b.Add("Mul", {}, {real, scale}));
  }
  if (q.axis != 0) return Unsupported("with scales along axis ", q.axis);
  Shape shape = {std::ssize(q.scale)};
  for (ptrdiff_t i = 1; i < rank; ++i) shape.push_back(1);
  const ValueId scales = b.Constant(Tensor::Of<float>(DType::kF32, shape, q.scale));
  ONCILLA_ASSIGN(const ValueId scale, b.Add(attrs, {scales, b.in(0)}, "scale"));
  return One(b.Add("Mul", {}, {real, scale}));
}

// Inputs: indices, rows.
Result<Values> LowerLookup(TfliteLowering& b) {
  return One(b.Add(GatherAttrs{.negative_indices = false}, {b.in(1), b.in(0)}));
}

Result<Values> LowerGatherNd(TfliteLowering& b) {
  return One(b.Add(GatherNDAttrs{.negative_indices = false}, {b.in(0), b.in(1)}));
}

// Inputs: indices, updates, shape. Updates at the same position are added. In LiteRT the integers
// of quantised tensors are added as they are, and the rest is the integer zero, whatever number
// that represents.
Result<Values> LowerScatterNd(TfliteLowering& b) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(1), 0));
  ONCILLA_ASSIGN(const ValueId zeros, b.Add("Fill", {}, {b.in(2), zero}, "zeros"));
  return One(b.Add(ScatterNDAttrs{.reduction = "add", .negative_indices = false},
                   {zeros, b.in(0), b.in(1)}));
}

Result<Values> LowerOneHot(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int(0));
  return LowerOneHotRows(b, axis);
}

// Of quantised tensors too, LiteRT asks whether the integer is zero.
Result<Values> LowerWhere(TfliteLowering& b) { return LowerPlaces(b); }

// Unique elements in order of first appearance.
Result<Values> LowerUnique(TfliteLowering& b) {
  b.Ignore(0);  // the output's type decides
  if (b.outputs() != 2) return DataLoss("has ", b.outputs(), " outputs");
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 1) return InvalidArgument("of a tensor of rank ", rank);
  ONCILLA_ASSIGN(const Values out,
                 b.AddAll(UniqueAttrs{.sorted = false, .equal_nans = false}, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId places, b.Cast(out[2], b.output_type(1), "places"));
  return Values{out[0], places};
}

Result<Values> LowerSegmentSum(TfliteLowering& b) {
  return One(b.Add("SortedSegmentReduce", SegmentAttrs{.reduction = "sum"}, {b.in(0), b.in(1)}));
}

constexpr char kSum[] = "sum", kProd[] = "prod", kMax[] = "max", kMin[] = "min";
template <const char* kReduction>
Result<Values> LowerUnsorted(TfliteLowering& b) {
  return One(b.Add("SegmentReduce",
                   SegmentAttrs{.reduction = std::string(kReduction), .identity = true},
                   {b.in(0), b.in(1), b.in(2)}));
}

Result<Values> LowerSparseToDense(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool validate, b.Flag(0));
  return One(b.Add(SparseToDenseAttrs{.validate = validate}, b.all_inputs()));
}

Result<Values> LowerBucketize(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<float> bounds, b.Floats(0));
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (!(bounds[i - 1] <= bounds[i])) return InvalidArgument("the boundaries do not ascend");
  }
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  const auto count = static_cast<int64_t>(bounds.size());
  const ValueId sorted = b.Constant(Tensor::Of<float>(DType::kF32, {count}, bounds));
  return One(b.Add(SearchSortedAttrs{.right = true, .to = DType::kI32}, {sorted, b.in(0)}));
}

// The integer zero lies beside the diagonal of quantised tensors too, as in LiteRT.
Result<Values> LowerMatrixDiag(TfliteLowering& b) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  return One(b.Add("MatrixDiag", {}, {b.in(0), b.Ints({0}), b.Ints({-1}), b.Ints({-1}), zero}));
}

Result<Values> LowerSetDiag(TfliteLowering& b) {
  return One(b.Add("MatrixSetDiag", {}, {b.in(0), b.in(1), b.Ints({0})}));
}

using Options = TfliteOptions;
constexpr auto kMoved = TfliteQuantised::kMoved;
constexpr TfliteOpRow kRows[] = {
    {"BROADCAST_ARGS", 2, Options::kNone, "BroadcastSizes"},
    {"BUCKETIZE", 1, Options::kBucketize, "", LowerBucketize},
    {"EMBEDDING_LOOKUP", 2, Options::kNone, "", LowerLookup, TfliteQuantised::kTaken,
     LowerQuantisedLookup},
    {"FILL", 2, Options::kNone, "Fill", nullptr, kMoved},
    {"GATHER", 2, Options::kGather, "", LowerGather, kMoved},
    {"GATHER_ND", 2, Options::kNone, "", LowerGatherNd, kMoved},
    {"MATRIX_DIAG", 1, Options::kNone, "", LowerMatrixDiag, kMoved},
    {"MATRIX_SET_DIAG", 2, Options::kNone, "", LowerSetDiag, kMoved},
    {"ONE_HOT", 4, Options::kOneHot, "", LowerOneHot, kMoved},
    {"RANGE", 3, Options::kNone, "Range"},
    {"RANK", 1, Options::kNone, "", LowerRank, TfliteQuantised::kTaken},
    {"SCATTER_ND", 3, Options::kNone, "", LowerScatterNd, kMoved},
    {"SEGMENT_SUM", 2, Options::kNone, "", LowerSegmentSum},
    {"SHAPE", 1, Options::kShape, "", LowerShape, TfliteQuantised::kTaken},
    {"SPARSE_TO_DENSE", 4, Options::kSparseToDense, "", LowerSparseToDense, kMoved},
    {"UNIQUE", 1, Options::kUnique, "", LowerUnique, kMoved},
    {"UNSORTED_SEGMENT_MAX", 3, Options::kNone, "", LowerUnsorted<kMax>},
    {"UNSORTED_SEGMENT_MIN", 3, Options::kNone, "", LowerUnsorted<kMin>},
    {"UNSORTED_SEGMENT_PROD", 3, Options::kNone, "", LowerUnsorted<kProd>},
    {"UNSORTED_SEGMENT_SUM", 3, Options::kNone, "", LowerUnsorted<kSum>},
    {"WHERE", 1, Options::kNone, "", LowerWhere, kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteIndexingRows() { return kRows; }

}  // namespace oncilla
