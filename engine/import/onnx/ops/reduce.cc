// ONNX's reductions, cumulations and selections along axes. Axes were attributes at first (before
// opset 13 for ReduceSum, 18 for the others), then inputs.
#include <algorithm>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerReduce(OnnxLowering& b) {
  const bool as_input = b.version() >= (b.op() == "ReduceSum" ? 13 : 18);
  ONCILLA_ASSIGN(const bool keep, b.Flag("keepdims", true));
  ValueId axes = b.in(1);
  bool no_op = false;
  if (as_input) {
    ONCILLA_ASSIGN(no_op, b.Flag("noop_with_empty_axes", false));
  } else {
    ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList("axes"));
    axes = list.empty() ? kNoValue : b.Ints(std::move(list));
  }
  if (no_op && axes == kNoValue) axes = b.Ints({});
  // For bools, the maximum is "any" and the minimum is "all".
  std::string_view op = b.op();
  if (b.dtype() == DType::kBool && op == "ReduceMax") op = "ReduceAny";
  if (b.dtype() == DType::kBool && op == "ReduceMin") op = "ReduceAll";
  return One(
      b.Add(op, ReduceAttrs{.keep_dims = keep, .empty_axes_is_all = !no_op}, {b.in(0), axes}));
}

Result<Values> LowerArg(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 0));
  ONCILLA_ASSIGN(const bool keep, b.Flag("keepdims", true));
  ONCILLA_ASSIGN(const bool last, b.Flag("select_last_index", false));
  return One(b.Add(b.op(), ArgAttrs{.axis = axis, .keep_dims = keep, .last = last}, {b.in(0)}));
}

Result<Values> LowerCumulative(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool exclusive, b.Flag("exclusive", false));
  ONCILLA_ASSIGN(const bool reverse, b.Flag("reverse", false));
  return One(b.Add(b.op(), CumulativeAttrs{exclusive, reverse}, {b.in(0), b.in(1)}));
}

Result<Values> LowerTopK(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const bool largest, b.Flag("largest", true));
  ONCILLA_ASSIGN(const bool sorted, b.Flag("sorted", true));
  ValueId k = b.in(1);
  if (b.version() < 10) {
    ONCILLA_ASSIGN(const int64_t number, b.NeedInt("k"));
    k = b.Ints({number});
  }
  if (k == kNoValue) return DataLoss("input k is missing");
  return b.AddAll(TopKAttrs{.axis = axis, .largest = largest, .sorted = sorted}, {b.in(0), k});
}

constexpr OnnxOpRow kRows[] = {
    {"ArgMax", 1, kNewestOnnxOpset, 1, "", LowerArg},
    {"ArgMin", 1, kNewestOnnxOpset, 1, "", LowerArg},
    {"CumProd", 26, kNewestOnnxOpset, 2, "", LowerCumulative},
    {"CumSum", 11, kNewestOnnxOpset, 2, "", LowerCumulative},
    {"ReduceL1", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceL2", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceLogSum", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceLogSumExp", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceMax", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceMean", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceMin", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceProd", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceSum", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"ReduceSumSquare", 1, kNewestOnnxOpset, 1, "", LowerReduce},
    {"TopK", 1, kNewestOnnxOpset, 1, "", LowerTopK},
};

}  // namespace

std::span<const OnnxOpRow> OnnxReduceRows() { return kRows; }

}  // namespace oncilla
