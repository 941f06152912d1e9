// TensorFlow's losses and rankings: cross entropies, the largest or the n-th element, and whether a
// class is among the top k.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

// Results: the loss of each row, and its gradient.
Result<Values> LowerCrossEntropy(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId logs, b.Add(SoftmaxAttrs{.log = true}, {b.in(0)}, "logs"));
  ONCILLA_ASSIGN(const ValueId softmax, b.Add("Softmax", {}, {b.in(0)}, "softmax"));
  // A label of zero contributes nothing, even if the class has probability zero.
  ONCILLA_ASSIGN(const ValueId terms, b.Add("MulNoNan", {}, {logs, b.in(1)}, "terms"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", {}, {terms, b.Ints({-1})}, "sum"));
  ONCILLA_ASSIGN(const ValueId loss, b.Add("Neg", {}, {sum}));
  ONCILLA_ASSIGN(const ValueId gradient, b.Add("Sub", {}, {softmax, b.in(1)}, "backprop"));
  return Values{loss, gradient};
}

// Labels are class indices; one out of range fails the run.
Result<Values> LowerSparseCrossEntropy(TfLowering& b) {
  const DType dtype = b.in_fact(0).dtype;
  ONCILLA_ASSIGN(const ValueId logs, b.Add(SoftmaxAttrs{.log = true}, {b.in(0)}, "logs"));
  ONCILLA_ASSIGN(const ValueId softmax, b.Add("Softmax", {}, {b.in(0)}, "softmax"));
  ONCILLA_ASSIGN(const ValueId picked,
                 b.Add(GatherAttrs{.axis = 1, .batch_dims = 1, .negative_indices = false},
                       {logs, b.in(1)}, "picked"));
  ONCILLA_ASSIGN(const ValueId loss, b.Add("Neg", {}, {picked}));
  ONCILLA_ASSIGN(const ValueId classes,
                 b.Add(ShapeAttrs{.start = 1, .end = 2}, {b.in(0)}, "classes"));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, 0));
  ONCILLA_ASSIGN(const ValueId on, b.Scalar(dtype, 1));
  ONCILLA_ASSIGN(const ValueId off_list, b.Add("Unsqueeze", {}, {off, b.Ints({0})}, "off"));
  ONCILLA_ASSIGN(const ValueId on_list, b.Add("Unsqueeze", {}, {on, b.Ints({0})}, "on"));
  ONCILLA_ASSIGN(const ValueId values,
                 b.Add(ConcatAttrs{.axis = 0}, {off_list, on_list}, "values"));
  ONCILLA_ASSIGN(const ValueId label, b.Add("OneHot", {}, {b.in(1), classes, values}, "labels"));
  ONCILLA_ASSIGN(const ValueId gradient, b.Add("Sub", {}, {softmax, label}, "backprop"));
  return Values{loss, gradient};
}

// The exact result, which satisfies any requested recall.
Result<Values> LowerApproxTopK(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t k, b.attrs().Int("k"));
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("reduction_dimension"));
  ONCILLA_ASSIGN(const bool largest, b.attrs().Bool("is_max_k"));
  ONCILLA_ASSIGN(const bool aggregate, b.attrs().Bool("aggregate_to_topk"));
  if (!aggregate) return Unsupported("candidates that are not aggregated");
  return b.AddAll(TopKAttrs{.axis = axis, .largest = largest, .to = DType::kI32},
                  {b.in(0), b.Ints({k})});
}

// The n-th smallest element of each row, counted from 0: the last of the n + 1 smallest.
Result<Values> LowerNthElement(TfLowering& b) {
  ONCILLA_ASSIGN(const bool reverse, b.attrs().Bool("reverse"));
  ONCILLA_ASSIGN(const ValueId n, b.Cast(b.in(1), DType::kI64, "n"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId k, b.Add("Add", {}, {n, one}, "k"));
  ONCILLA_ASSIGN(
      const Values first,
      b.AddAll(TopKAttrs{.axis = -1, .largest = reverse, .sorted = true}, {b.in(0), k}, "first"));
  return One(b.Add(GatherAttrs{.axis = -1, .negative_indices = false}, {first[0], n}));
}

// Whether fewer than k classes of a row score higher than the target. False for rows with a target
// out of range or with numbers that are not finite.
Result<Values> LowerInTopK(TfLowering& b) {
  ValueId k;
  if (b.op() == "InTopK") {
    ONCILLA_ASSIGN(const int64_t number, b.attrs().Int("k"));
    ONCILLA_ASSIGN(k, b.Scalar(DType::kI64, static_cast<double>(number)));
  } else {
    ONCILLA_ASSIGN(k, b.Cast(b.in(2), DType::kI64, "k"));
  }
  ONCILLA_ASSIGN(const ValueId targets, b.Cast(b.in(1), DType::kI64, "targets"));
  ONCILLA_ASSIGN(const ValueId classes,
                 b.Add(ShapeAttrs{.start = 1, .end = 2}, {b.in(0)}, "classes"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kI64, 1));
  ONCILLA_ASSIGN(const ValueId last, b.Add("Sub", {}, {classes, one}, "last"));
  ONCILLA_ASSIGN(const ValueId below, b.Add("Min", {}, {targets, last}, "below"));
  ONCILLA_ASSIGN(const ValueId inside, b.Add("Max", {}, {below, zero}, "inside"));
  ONCILLA_ASSIGN(const ValueId right, b.Add("Equal", {}, {inside, targets}, "right"));
  ONCILLA_ASSIGN(const ValueId score,
                 b.Add(GatherAttrs{.axis = 1, .batch_dims = 1, .negative_indices = false},
                       {b.in(0), inside}, "score"));
  ONCILLA_ASSIGN(const ValueId column, b.Add("Unsqueeze", {}, {score, b.Ints({1})}, "column"));
  ONCILLA_ASSIGN(const ValueId higher, b.Add("Greater", {}, {b.in(0), column}, "higher"));
  ONCILLA_ASSIGN(const ValueId ones, b.Cast(higher, DType::kI64, "ones"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceSum", {}, {ones, b.Ints({1})}, "count"));
  ONCILLA_ASSIGN(const ValueId among, b.Add("Less", {}, {count, k}, "among"));
  ONCILLA_ASSIGN(const ValueId finite, b.Add("IsFinite", {}, {b.in(0)}, "finite"));
  ONCILLA_ASSIGN(const ValueId all, b.Add("ReduceAll", {}, {finite, b.Ints({1})}, "all"));
  ONCILLA_ASSIGN(const ValueId good, b.Add("And", {}, {right, all}, "good"));
  return One(b.Add("And", {}, {among, good}));
}

constexpr TfOpRow kRows[] = {
    {"ApproxTopK", 1, "", LowerApproxTopK},
    {"InTopK", 2, "", LowerInTopK},
    {"InTopKV2", 3, "", LowerInTopK},
    {"NthElement", 2, "", LowerNthElement},
    {"SoftmaxCrossEntropyWithLogits", 2, "", LowerCrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", 2, "", LowerSparseCrossEntropy},
};

}  // namespace

std::span<const TfOpRow> TfLossRows() { return kRows; }

}  // namespace oncilla
