// ONNX's losses: nodes of training graphs that remain in evaluation models.
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// -weight[target] * log_probability[target] for each position, reduced as requested. Classes are on
// axis 1; positions whose target is ignore_index contribute nothing.
Result<ValueId> NegativeLogLikelihood(OnnxLowering& b, ValueId log_probability, ValueId target,
                                      ValueId class_weights) {
  ONCILLA_ASSIGN(const std::string reduction, b.String("reduction", "mean"));
  const bool ignores = b.HasAttr("ignore_index");
  ONCILLA_ASSIGN(const int64_t ignored, b.Int("ignore_index", 0));
  const DType dtype = b.fact(log_probability).dtype;
  ONCILLA_ASSIGN(target, b.Cast(target, DType::kI64, "target"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(dtype, 0));
  ValueId skip = kNoValue;
  if (ignores) {
    const ValueId number = b.Constant(Tensor::ScalarInt64(ignored));
    ONCILLA_ASSIGN(skip, b.Add("Equal", {}, {target, number}, "skip"));
    const ValueId first = b.Constant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(target, b.Add("Where", {}, {skip, first, target}, "safe_target"));
  }
  ONCILLA_ASSIGN(const ValueId place, b.Unsqueeze(target, {1}, "place"));
  ONCILLA_ASSIGN(ValueId loss,
                 b.Add(GatherElementsAttrs{.axis = 1}, {log_probability, place}, "picked"));
  ONCILLA_ASSIGN(loss, b.Add("Squeeze", {}, {loss, b.Ints({1})}, "per_place"));
  ONCILLA_ASSIGN(loss, b.Add("Neg", {}, {loss}, "negative"));
  ValueId weight = kNoValue;
  if (class_weights != kNoValue) {
    ONCILLA_ASSIGN(weight, b.Add("Gather", {}, {class_weights, target}, "weight"));
  } else if (ignores) {
    ONCILLA_ASSIGN(const ValueId one, b.Scalar(dtype, 1));
    ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {target}, "shape"));
    ONCILLA_ASSIGN(weight, b.Add("Fill", {}, {shape, one}, "weight"));
  }
  if (ignores) {
    ONCILLA_ASSIGN(weight, b.Add("Where", {}, {skip, none, weight}, "used_weight"));
    ONCILLA_ASSIGN(loss, b.Add("Where", {}, {skip, none, loss}, "used"));
  }
  if (weight != kNoValue) {
    ONCILLA_ASSIGN(loss, b.Add("Mul", {}, {loss, weight}, "weighted"));
  }
  if (reduction == "none") return b.Add("Identity", {}, {loss});
  if (reduction == "sum") return b.Add("ReduceSum", {}, {loss});
  if (reduction != "mean") return InvalidArgument("reduction is '", reduction, "'");
  if (weight == kNoValue) return b.Add("ReduceMean", {}, {loss});
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", {}, {loss}, "sum"));
  ONCILLA_ASSIGN(const ValueId weights, b.Add("ReduceSum", {}, {weight}, "weights"));
  return b.Add("Div", {}, {sum, weights});
}

Result<Values> LowerNegativeLogLikelihood(OnnxLowering& b) {
  return One(NegativeLogLikelihood(b, b.in(0), b.in(1), b.in(2)));
}

// The same loss of the log softmax of the scores; that log softmax is the second output.
Result<Values> LowerSoftmaxCrossEntropy(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId log,
                 b.Add(SoftmaxAttrs{.axis = 1, .log = true}, {b.in(0)}, "log_probability"));
  ONCILLA_ASSIGN(const ValueId loss, NegativeLogLikelihood(b, log, b.in(1), b.in(2)));
  return Values{loss, log};
}

constexpr OnnxOpRow kRows[] = {
    {"NegativeLogLikelihoodLoss", 12, kNewestOnnxOpset, 2, "", LowerNegativeLogLikelihood},
    {"SoftmaxCrossEntropyLoss", 12, kNewestOnnxOpset, 2, "", LowerSoftmaxCrossEntropy},
};

}  // namespace

std::span<const OnnxOpRow> OnnxLossRows() { return kRows; }

}  // namespace oncilla
