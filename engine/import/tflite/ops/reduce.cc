// TFLite's reductions: over axes, along one axis, and top k.
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {
namespace {

constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean", kMax[] = "ReduceMax";
constexpr char kMin[] = "ReduceMin", kProd[] = "ReduceProd", kAll[] = "ReduceAll";
constexpr char kAny[] = "ReduceAny";

// An empty list of axes means that nothing is reduced.
template <const char* kCanonical>
Result<Values> LowerReduce(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.Flag(0));
  if (std::string_view(kCanonical) == kMean && !IsFloat(b.dtype())) {
    return Unsupported("a mean of ", b.dtype());
  }
  return One(b.Add(kCanonical, ReduceAttrs{.keep_dims = keep_dims, .empty_axes_is_all = false},
                   {b.in(0), b.in(1)}));
}

// The axes to reduce, in order and without duplicates.
Result<std::set<int>> AxesOf(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, b.KnownInts(1, "the axes"));
  const PartialShape& shape = b.in_fact(0).shape;
  if (!shape.ranked()) return Unsupported("of an input without a rank");
  std::set<int> distinct;
  for (const int64_t axis : axes) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, shape.rank()));
    distinct.insert(at);
  }
  return distinct;
}

// The number of elements of x that are reduced to one of the result.
Result<int64_t> CountOf(TfliteLowering& b) {
  ONCILLA_ASSIGN(const std::set<int> axes, AxesOf(b));
  const PartialShape& shape = b.in_fact(0).shape;
  int64_t count = 1;
  for (const int axis : axes) {
    if (!shape[axis].known()) return Unsupported("along axis ", axis, " of ", shape);
    count = SaturatingMul(count, shape[axis].size);
  }
  return count;
}

// Sums in 32 bits, converted to the output's scale by one factor. The factor of a mean includes the
// count, with as many additional bits as the count has, so that no precision is lost.
template <bool kIsMean>
Result<Values> LowerQuantisedSum(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.Flag(0));
  ONCILLA_TRY(CheckTfliteIntegers(b, 1));
  const TfliteTensor& to = b.output_tensor();
  const double scale = double{b.tensor(0).quantization.scale[0]};
  ONCILLA_ASSIGN(TfliteFixedPoint factor,
                 TfliteFixedPointOf(scale / double{to.quantization.scale[0]}));
  if (kIsMean) {
    ONCILLA_ASSIGN(const int64_t count, CountOf(b));
    if (count < 1) return Unsupported("a mean of ", count, " elements");
    int shift = 63 - std::countl_zero(static_cast<uint64_t>(count));
    shift = std::min({shift, 32, 31 + factor.shift});
    factor.multiplier = static_cast<int32_t>((int64_t{factor.multiplier} << shift) / count);
    factor.shift -= shift;
  }
  ONCILLA_ASSIGN(const ValueId x, TfliteMoved(b, 0));
  ONCILLA_ASSIGN(const ValueId sum,
                 b.Add("ReduceSum", ReduceAttrs{.keep_dims = keep_dims, .empty_axes_is_all = false},
                       {x, b.in(1)}, "sum"));
  return One(
      TfliteFixedBy(b, sum, {factor}, RequantizeAttrs(), b.output_type(), TfliteZeroOf(to), ""));
}

// Subtracts the zero point from input 0, in 64 bits, and merges the reduced axes into a last one.
// Returns its elements: `count` values whose last axis has size one.
Result<Values> StepsOf(TfliteLowering& b, const std::set<int>& axes, int64_t count) {
  const int rank = b.in_fact(0).shape.rank();
  std::vector<int64_t> perm;
  for (int axis = 0; axis < rank; ++axis) {
    if (!axes.contains(axis)) perm.push_back(axis);
  }
  std::vector<int64_t> sizes(perm.size(), 0);  // zero: unchanged
  sizes.push_back(count);
  perm.insert(perm.end(), axes.begin(), axes.end());
  ONCILLA_ASSIGN(ValueId x, TfliteMoved(b, 0, DType::kI64));
  ONCILLA_ASSIGN(x, b.Transpose(x, std::move(perm), "ordered"));
  ONCILLA_ASSIGN(x,
                 b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints(std::move(sizes))}, "list"));
  if (count == 1) return Values{x};
  return b.AddAll(SplitAttrs{.axis = -1, .parts = count}, {x}, "steps");
}

// Each multiplication is followed by a conversion by an equal part of the output's scale, so that
// no intermediate result exceeds 32 bits.
Result<Values> LowerQuantisedProduct(TfliteLowering& b) {
  constexpr int64_t kMostSteps = 256;  // each step adds three nodes
  ONCILLA_ASSIGN(const bool keep_dims, b.Flag(0));
  ONCILLA_TRY(CheckTfliteIntegers(b, 1));
  if (b.dtype() == DType::kU8) return Unsupported("a product of u8");
  ONCILLA_ASSIGN(const std::set<int> axes, AxesOf(b));
  ONCILLA_ASSIGN(const int64_t count, CountOf(b));
  if (count < 1 || count > kMostSteps) return Unsupported("a product of ", count, " elements");
  const TfliteTensor& to = b.output_tensor();
  const double root = std::pow(double{to.quantization.scale[0]}, 1.0 / static_cast<double>(count));
  ONCILLA_ASSIGN(const TfliteFixedPoint factor,
                 TfliteFixedPointOf(double{b.tensor(0).quantization.scale[0]} / root));
  ONCILLA_ASSIGN(const Values steps, StepsOf(b, axes, count));
  ValueId product = steps[0];
  for (size_t i = 1; i < steps.size(); ++i) {
    const std::string role = StrCat("product", i);
    ONCILLA_ASSIGN(product, b.Add("Mul", {}, {product, steps[i]}, role));
    ONCILLA_ASSIGN(product,
                   TfliteFixedBy(b, product, {factor}, {}, DType::kI32, 0, role + "_scaled"));
    ONCILLA_ASSIGN(product, b.Cast(product, DType::kI64, role + "_wide"));
  }
  ONCILLA_ASSIGN(const ValueId cut,
                 TfliteFixedBy(b, product, {factor}, {}, b.output_type(), TfliteZeroOf(to), "cut"));
  const bool back = keep_dims && !axes.empty();
  ONCILLA_ASSIGN(const ValueId y, b.Add("Squeeze", {}, {cut, b.Ints({-1})}, back ? "without" : ""));
  if (!back) return Values{y};
  return One(b.Unsqueeze(y, std::vector<int64_t>(axes.begin(), axes.end()), ""));
}

template <bool kMost>
Result<Values> LowerArg(TfliteLowering& b) {
  b.Ignore(0);  // the output's type decides
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(1, "the axis"));
  const ArgAttrs attrs = {.axis = axis, .skip_nan = IsFloat(b.dtype()), .to = b.output_type()};
  return One(b.Add(kMost ? "ArgMax" : "ArgMin", attrs, {b.in(0)}));
}

Result<Values> LowerCumSum(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool exclusive, b.Flag(0));
  ONCILLA_ASSIGN(const bool reverse, b.Flag(1));
  return One(b.Add("CumSum", CumulativeAttrs{exclusive, reverse}, {b.in(0), b.in(1)}));
}

Result<Values> LowerTopK(TfliteLowering& b) {
  if (b.outputs() != 2) return DataLoss("has ", b.outputs(), " outputs");
  return b.AddAll(TopKAttrs{.axis = -1, .to = b.output_type(1)}, {b.in(0), b.in(1)});
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"ARG_MAX", 2, Options::kArgMax, "", LowerArg<true>, TfliteQuantised::kTaken},
    {"ARG_MIN", 2, Options::kArgMin, "", LowerArg<false>, TfliteQuantised::kTaken},
    {"CUMSUM", 2, Options::kCumsum, "", LowerCumSum},
    {"MEAN", 2, Options::kReducer, "", LowerReduce<kMean>, TfliteQuantised::kTaken,
     LowerQuantisedSum<true>},
    {"REDUCE_ALL", 2, Options::kReducer, "", LowerReduce<kAll>},
    {"REDUCE_ANY", 2, Options::kReducer, "", LowerReduce<kAny>},
    {"REDUCE_MAX", 2, Options::kReducer, "", LowerReduce<kMax>, TfliteQuantised::kMoved},
    {"REDUCE_MIN", 2, Options::kReducer, "", LowerReduce<kMin>, TfliteQuantised::kMoved},
    {"REDUCE_PROD", 2, Options::kReducer, "", LowerReduce<kProd>, TfliteQuantised::kTaken,
     LowerQuantisedProduct},
    {"SUM", 2, Options::kReducer, "", LowerReduce<kSum>, TfliteQuantised::kTaken,
     LowerQuantisedSum<false>},
    {"TOPK_V2", 2, Options::kNone, "", LowerTopK, TfliteQuantised::kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteReduceRows() { return kRows; }

}  // namespace oncilla
