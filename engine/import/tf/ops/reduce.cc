// TensorFlow's reductions: over axes, along one axis, and top k.
#include "engine/import/tf/computed_axis.h"

namespace oncilla {
namespace {

// In TensorFlow an empty list of axes means that nothing is reduced.
template <const char* kCanonical>
Result<Values> LowerReduce(TfLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  return One(b.Add(kCanonical, ReduceAttrs{.keep_dims = keep_dims, .empty_axes_is_all = false},
                   {b.in(0), b.in(1)}));
}

constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean", kMax[] = "ReduceMax";
constexpr char kMin[] = "ReduceMin", kProd[] = "ReduceProd", kAll[] = "ReduceAll";
constexpr char kAny[] = "ReduceAny", kNorm[] = "ReduceL2";

Result<Values> LowerArg(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("output_type"));
  ArgAttrs attrs = {.skip_nan = IsFloat(b.in_fact(0).dtype), .to = to};
  if (IsComputed(b, 1)) return ArgAlong(b, b.op(), attrs, b.in(0), b.in(1));
  ONCILLA_ASSIGN(attrs.axis, b.KnownInt(1, "the dimension"));
  return One(b.Add(b.op(), attrs, {b.in(0)}));
}

Result<Values> LowerScan(TfLowering& b) {
  ONCILLA_ASSIGN(const bool exclusive, b.attrs().Bool("exclusive"));
  ONCILLA_ASSIGN(const bool reverse, b.attrs().Bool("reverse"));
  const std::string_view canonical = b.op() == "Cumsum"    ? "CumSum"
                                     : b.op() == "Cumprod" ? "CumProd"
                                                           : "CumLogSumExp";
  return One(b.Add(canonical, CumulativeAttrs{exclusive, reverse}, {b.in(0), b.in(1)}));
}

Result<Values> LowerTopK(TfLowering& b) {
  ONCILLA_ASSIGN(const bool sorted, b.attrs().Bool("sorted"));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("index_type"));
  return b.AddAll(TopKAttrs{.axis = -1, .sorted = sorted, .to = to}, {b.in(0), b.in(1)});
}

constexpr TfOpRow kRows[] = {
    {"All", 2, "", LowerReduce<kAll>},
    {"Any", 2, "", LowerReduce<kAny>},
    {"ArgMax", 2, "", LowerArg},
    {"ArgMin", 2, "", LowerArg},
    {"Cumprod", 2, "", LowerScan},
    {"Cumsum", 2, "", LowerScan},
    {"CumulativeLogsumexp", 2, "", LowerScan},
    {"EuclideanNorm", 2, "", LowerReduce<kNorm>},
    {"Max", 2, "", LowerReduce<kMax>},
    {"Mean", 2, "", LowerReduce<kMean>},
    {"Min", 2, "", LowerReduce<kMin>},
    {"Prod", 2, "", LowerReduce<kProd>},
    {"Sum", 2, "", LowerReduce<kSum>},
    {"TopKV2", 2, "", LowerTopK},
};

}  // namespace

std::span<const TfOpRow> TfReduceRows() { return kRows; }

}  // namespace oncilla
