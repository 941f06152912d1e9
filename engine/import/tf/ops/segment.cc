// TensorFlow's segment reductions, counts and sorted search.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

// The part of "SparseSegmentMean", "UnsortedSegmentMax" and the like after "Segment".
std::string ReductionOf(std::string_view op) {
  std::string_view rest = op.substr(op.find("Segment") + 7);
  rest = rest.substr(0, rest.find("With"));
  std::string out(rest);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Result<Values> LowerSegment(TfLowering& b) {
  return One(
      b.Add("SortedSegmentReduce",
            SegmentAttrs{.reduction = ReductionOf(b.op()), .identity = b.op() == "SegmentProd"},
            {b.in(0), b.in(1)}));
}

Result<Values> LowerUnsortedSegment(TfLowering& b) {
  return One(b.Add("SegmentReduce",
                   SegmentAttrs{.reduction = ReductionOf(b.op()), .identity = true},
                   {b.in(0), b.in(1), b.in(2)}));
}

// Gathers the rows that the indices name, then reduces segments of them.
Result<Values> LowerSparseSegment(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId rows,
                 b.Add(GatherAttrs{.negative_indices = false}, {b.in(0), b.in(1)}, "rows"));
  const std::string reduction = ReductionOf(b.op());
  if (b.inputs() < 4) {
    return One(b.Add("SortedSegmentReduce", SegmentAttrs{.reduction = reduction}, {rows, b.in(2)}));
  }
  return One(b.Add("SegmentReduce", SegmentAttrs{.reduction = reduction, .sorted = true},
                   {rows, b.in(2), b.in(3)}));
}

template <bool kRight>
Result<Values> LowerSearch(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add(SearchSortedAttrs{.right = kRight, .to = to}, {b.in(0), b.in(1)}));
}

// The boundaries are floats, and values of all types are compared as floats.
Result<Values> LowerBucketize(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<float> boundaries, b.attrs().Floats("boundaries"));
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (!(boundaries[i - 1] <= boundaries[i])) return InvalidArgument("Expected sorted boundaries");
  }
  ValueId x = b.in(0);
  const DType dtype = b.fact(x).dtype;
  const auto count = static_cast<int64_t>(boundaries.size());
  if (dtype == DType::kF64) {
    const std::vector<double> wide(boundaries.begin(), boundaries.end());
    const ValueId sorted = b.Constant(Tensor::Of<double>(DType::kF64, {count}, wide));
    return One(b.Add(SearchSortedAttrs{.right = true, .to = DType::kI32}, {sorted, x}));
  }
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kF32, "values"));
  const ValueId sorted = b.Constant(Tensor::Of<float>(DType::kF32, {count}, boundaries));
  return One(b.Add(SearchSortedAttrs{.right = true, .to = DType::kI32}, {sorted, x}));
}

Result<Values> LowerBincount(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("T"));
  BincountAttrs attrs = {.to = to};
  ValueId x = b.in(0);
  if (b.op() == "DenseBincount") {
    ONCILLA_ASSIGN(attrs.binary, b.attrs().Bool("binary_output"));
  } else {
    // Input of any shape is counted as one list.
    ONCILLA_ASSIGN(x, b.Add("Reshape", {}, {x, b.Ints({-1})}, "list"));
  }
  return One(b.Add(attrs, {x, b.in(1), b.in(2)}));
}

// Counts row by row: `rows` gives the row of each of `values`, and there are count[] rows. The
// index of a number is its row's start plus the number; numbers from `size` on are not counted.
Result<Values> CountRows(TfLowering& b, ValueId rows, ValueId values, ValueId count, ValueId size,
                         ValueId weights) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("T"));
  ONCILLA_ASSIGN(const bool binary, b.attrs().Bool("binary_output"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(values, DType::kI64, "wide"));
  ONCILLA_ASSIGN(ValueId width, b.Cast(size, DType::kI64, "width"));
  ONCILLA_ASSIGN(width, b.Add("Reshape", {}, {width, b.Ints({})}, "columns"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("GreaterEqual", {}, {wide, zero}, "above"));
  ONCILLA_ASSIGN(const ValueId good, b.Add("ReduceAll", {}, {above}, "good"));
  const ValueId text = b.Constant(Tensor::Strings({}, {"Input must be non-negative"}));
  ONCILLA_TRY(b.AddAll("Assert", {}, {good, text}, "check").status());
  ONCILLA_ASSIGN(const ValueId begin, b.Add("Mul", {}, {rows, width}, "begin"));
  ONCILLA_ASSIGN(const ValueId place, b.Add("Add", {}, {begin, wide}, "place"));
  ONCILLA_ASSIGN(const ValueId all, b.Add("Mul", {}, {count, width}, "all"));
  ONCILLA_ASSIGN(const ValueId inside, b.Add("Less", {}, {wide, width}, "inside"));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Where", {}, {inside, place, all}, "places"));
  ONCILLA_ASSIGN(const ValueId counts, b.Add(BincountAttrs{.binary = binary, .to = to},
                                             {places, all, weights}, "counts"));
  ONCILLA_ASSIGN(const ValueId row, b.Add("Reshape", {}, {count, b.Ints({1})}, "row_count"));
  ONCILLA_ASSIGN(const ValueId column, b.Add("Reshape", {}, {width, b.Ints({1})}, "column_count"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add(ConcatAttrs{.axis = 0}, {row, column}, "shape"));
  return One(b.Add("Reshape", {}, {counts, shape}));
}

// Counts a sparse list, or a sparse matrix row by row.
Result<Values> LowerSparseBincount(TfLowering& b) {
  const PartialShape shape = b.in_fact(2).shape;
  if (!shape.ranked() || shape.rank() != 1 || !shape[0].known()) {
    return Unsupported("the rank of the sparse tensor is not known");
  }
  if (shape[0].size == 1) {
    ONCILLA_ASSIGN(const DType to, b.attrs().Type("T"));
    ONCILLA_ASSIGN(const bool binary, b.attrs().Bool("binary_output"));
    return One(b.Add(BincountAttrs{.binary = binary, .to = to}, {b.in(1), b.in(3), b.in(4)}));
  }
  if (shape[0].size != 2) return InvalidArgument("a sparse tensor of rank ", shape[0].size);
  ONCILLA_ASSIGN(const ValueId first,
                 b.Add("Slice", {}, {b.in(0), b.Ints({0}), b.Ints({1}), b.Ints({1})}, "first"));
  ONCILLA_ASSIGN(const ValueId rows, b.Add("Reshape", {}, {first, b.Ints({-1})}, "rows"));
  ONCILLA_ASSIGN(const ValueId height,
                 b.Add("Slice", {}, {b.in(2), b.Ints({0}), b.Ints({1})}, "height"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("Reshape", {}, {height, b.Ints({})}, "count"));
  return CountRows(b, rows, b.in(1), count, b.in(3), b.in(4));
}

// Counts a ragged matrix, in which row i holds the values from splits[i] on.
Result<Values> LowerRaggedBincount(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId size, b.Add("Size", {}, {b.in(1)}, "number"));
  ONCILLA_ASSIGN(const ValueId each, b.Add("Range", {}, {zero, size, one}, "each"));
  ONCILLA_ASSIGN(const ValueId after, b.Add(SearchSortedAttrs{.right = true, .to = DType::kI64},
                                            {b.in(0), each}, "after"));
  ONCILLA_ASSIGN(const ValueId rows, b.Add("Sub", {}, {after, one}, "rows"));
  ONCILLA_ASSIGN(const ValueId ends, b.Add("Size", {}, {b.in(0)}, "ends"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("Sub", {}, {ends, one}, "count"));
  return CountRows(b, rows, b.in(1), count, b.in(2), b.in(3));
}

// The bin of each value among equal parts of [low, high], with values outside in the first and last
// bin; then the number of values in each bin.
Result<Values> LowerHistogram(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  ONCILLA_ASSIGN(const ValueId ends, b.Cast(b.in(1), DType::kF64, "range"));
  ONCILLA_ASSIGN(const Values range, b.AddAll(SplitAttrs{.axis = 0, .parts = 2}, {ends}, "ends"));
  ONCILLA_ASSIGN(const ValueId rises, b.Add("Less", {}, {range[0], range[1]}, "rises"));
  const ValueId text = b.Constant(
      Tensor::Strings({}, {"value_range should satisfy value_range[0] < value_range[1]"}));
  ONCILLA_TRY(b.AddAll(AssertAttrs{.summarize = 2}, {rises, text, b.in(1)}, "check").status());
  ONCILLA_ASSIGN(const ValueId bins, b.Cast(b.in(2), DType::kF64, "bins"));
  ONCILLA_ASSIGN(const ValueId width, b.Add("Sub", {}, {range[1], range[0]}, "width"));
  ONCILLA_ASSIGN(const ValueId step, b.Add("Div", {}, {width, bins}, "step"));
  ONCILLA_ASSIGN(const ValueId low, b.Add("Slice", {}, {b.in(1), b.Ints({0}), b.Ints({1})}, "low"));
  ONCILLA_ASSIGN(const ValueId list, b.Add("Reshape", {}, {b.in(0), b.Ints({-1})}, "list"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Max", {}, {list, low}, "above"));
  // The difference is computed in the values' own type.
  ONCILLA_ASSIGN(ValueId at, b.Add("Sub", {}, {above, low}, "distance"));
  ONCILLA_ASSIGN(at, b.Cast(at, DType::kF64, "distance_f64"));
  ONCILLA_ASSIGN(at, b.Add("Div", {}, {at, step}, "places"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF64, 1));
  ONCILLA_ASSIGN(const ValueId last, b.Add("Sub", {}, {bins, one}, "last"));
  ONCILLA_ASSIGN(at, b.Add("Min", {}, {at, last}, "clipped"));
  ONCILLA_ASSIGN(at, b.Cast(at, DType::kI32, "indices"));
  return One(b.Add(BincountAttrs{.to = to}, {at, b.in(2)}));
}

constexpr TfOpRow kRows[] = {
    {"Bincount", 3, "", LowerBincount},
    {"Bucketize", 1, "", LowerBucketize},
    {"DenseBincount", 3, "", LowerBincount},
    {"HistogramFixedWidth", 3, "", LowerHistogram},
    {"LowerBound", 2, "", LowerSearch<false>},
    {"RaggedBincount", 4, "", LowerRaggedBincount},
    {"SegmentMax", 2, "", LowerSegment},
    {"SegmentMean", 2, "", LowerSegment},
    {"SegmentMin", 2, "", LowerSegment},
    {"SegmentProd", 2, "", LowerSegment},
    {"SegmentSum", 2, "", LowerSegment},
    {"SparseBincount", 5, "", LowerSparseBincount},
    {"SparseSegmentMean", 3, "", LowerSparseSegment},
    {"SparseSegmentMeanWithNumSegments", 4, "", LowerSparseSegment},
    {"SparseSegmentSqrtN", 3, "", LowerSparseSegment},
    {"SparseSegmentSqrtNWithNumSegments", 4, "", LowerSparseSegment},
    {"SparseSegmentSum", 3, "", LowerSparseSegment},
    {"SparseSegmentSumWithNumSegments", 4, "", LowerSparseSegment},
    {"UnsortedSegmentMax", 3, "", LowerUnsortedSegment},
    {"UnsortedSegmentMin", 3, "", LowerUnsortedSegment},
    {"UnsortedSegmentProd", 3, "", LowerUnsortedSegment},
    {"UnsortedSegmentSum", 3, "", LowerUnsortedSegment},
    {"UpperBound", 2, "", LowerSearch<true>},
};

}  // namespace

std::span<const TfOpRow> TfSegmentRows() { return kRows; }

}  // namespace oncilla
