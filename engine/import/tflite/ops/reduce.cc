// TFLite's reductions: over axes, along one axis, and the largest few.
#include "engine/import/tflite/lowering.h"

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

template <bool kMost>
Result<Values> LowerArg(TfliteLowering& b) {
  b.Ignore(0);  // the type of the output decides
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
    {"MEAN", 2, Options::kReducer, "", LowerReduce<kMean>},
    {"REDUCE_ALL", 2, Options::kReducer, "", LowerReduce<kAll>},
    {"REDUCE_ANY", 2, Options::kReducer, "", LowerReduce<kAny>},
    {"REDUCE_MAX", 2, Options::kReducer, "", LowerReduce<kMax>, TfliteQuantised::kMoved},
    {"REDUCE_MIN", 2, Options::kReducer, "", LowerReduce<kMin>, TfliteQuantised::kMoved},
    {"REDUCE_PROD", 2, Options::kReducer, "", LowerReduce<kProd>},
    {"SUM", 2, Options::kReducer, "", LowerReduce<kSum>},
    {"TOPK_V2", 2, Options::kNone, "", LowerTopK, TfliteQuantised::kMoved},
};

}  // namespace

std::span<const TfliteOpRow> TfliteReduceRows() { return kRows; }

}  // namespace oncilla
