// ONNX's activations.
#include <cmath>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// Activations whose attribute alpha has the canonical name but a different default.
Result<Values> LowerAlpha(OnnxLowering& b) {
  const float otherwise = b.op() == "LeakyRelu" ? 0.01f : 1.0f;
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", otherwise));
  return One(b.Add(b.op(), AlphaAttrs{alpha}, {b.in(0)}));
}

Result<Values> LowerHardSigmoid(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 0.2f));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 0.5f));
  return One(b.Add(HardSigmoidAttrs{alpha, beta}, {b.in(0)}));
}

// gamma * Elu with alpha; the usual constants have their own canonical op.
Result<Values> LowerSelu(OnnxLowering& b) {
  // Before opset 6 the defaults were rounded to four digits.
  const bool old = b.version() < 6;
  const float usual_alpha = 1.67326324f, usual_gamma = 1.05070099f;
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", old ? 1.6732f : usual_alpha));
  ONCILLA_ASSIGN(const float gamma, b.Float("gamma", old ? 1.0507f : usual_gamma));
  if (alpha == usual_alpha && gamma == usual_gamma) return One(b.Add("Selu", {}, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId elu, b.Add("Elu", AlphaAttrs{alpha}, {b.in(0)}, "elu"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{gamma}));
  return One(b.Add("Mul", {}, {elu, factor}));
}

Result<Values> LowerGelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string approximate, b.String("approximate", "none"));
  if (approximate != "none" && approximate != "tanh") {
    return InvalidArgument("approximate is '", approximate, "'");
  }
  return One(b.Add(GeluAttrs{.approximate = approximate == "tanh"}, {b.in(0)}));
}

// x * sigmoid(alpha * x).
Result<ValueId> AddSwish(OnnxLowering& b, std::string_view role) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  if (alpha == 1) return b.Add("Silu", {}, {b.in(0)}, role);
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{alpha}));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {b.in(0), factor}, "scaled"));
  ONCILLA_ASSIGN(const ValueId gate, b.Add("Sigmoid", {}, {scaled}, "gate"));
  return b.Add("Mul", {}, {b.in(0), gate}, role);
}

Result<Values> LowerSwish(OnnxLowering& b) { return One(AddSwish(b, "")); }

// The second input times Swish of the first; both have the same shape.
Result<Values> LowerSwiGlu(OnnxLowering& b) {
  ONCILLA_TRY(MergeShapes(b.in_fact(0).shape, b.in_fact(1).shape).status());
  ONCILLA_ASSIGN(const ValueId gate, AddSwish(b, "swish"));
  return One(b.Add("Mul", {}, {gate, b.in(1)}));
}

// Before opset 7 a slope per channel was aligned with axis 1; since then it broadcasts as in NumPy.
Result<Values> LowerPRelu(OnnxLowering& b) {
  ValueId slope = b.in(1);
  if (b.version() < 7) {
    ONCILLA_ASSIGN(const int rank, b.Rank(0));
    ONCILLA_ASSIGN(const int slope_rank, b.Rank(1, "the slope"));
    const bool single = b.in_fact(1).shape.elements().size == 1;
    if (slope_rank == 1 && !single) {
      ONCILLA_ASSIGN(slope, b.PerChannel(slope, rank, "slope"));
    }
  }
  return One(b.Add("PRelu", {}, {b.in(0), slope}));
}

constexpr OnnxOpRow kRows[] = {
    {"Celu", 12, kNewestOnnxOpset, 1, "", LowerAlpha},
    {"Elu", 1, kNewestOnnxOpset, 1, "", LowerAlpha},
    {"Gelu", 20, kNewestOnnxOpset, 1, "", LowerGelu},
    {"HardSigmoid", 1, kNewestOnnxOpset, 1, "", LowerHardSigmoid},
    {"HardSwish", 14, kNewestOnnxOpset, 1, "HardSwish"},
    {"LeakyRelu", 1, kNewestOnnxOpset, 1, "", LowerAlpha},
    {"Mish", 18, kNewestOnnxOpset, 1, "Mish"},
    {"PRelu", 1, kNewestOnnxOpset, 2, "", LowerPRelu},
    {"Relu", 1, kNewestOnnxOpset, 1, "Relu"},
    {"Selu", 1, kNewestOnnxOpset, 1, "", LowerSelu},
    {"Sigmoid", 1, kNewestOnnxOpset, 1, "Sigmoid"},
    {"Softplus", 1, kNewestOnnxOpset, 1, "Softplus"},
    {"Softsign", 1, kNewestOnnxOpset, 1, "Softsign"},
    {"SwiGLU", 28, kNewestOnnxOpset, 2, "", LowerSwiGlu},
    {"Swish", 24, kNewestOnnxOpset, 1, "", LowerSwish},
    {"Tanh", 1, kNewestOnnxOpset, 1, "Tanh"},
    {"ThresholdedRelu", 1, kNewestOnnxOpset, 1, "", LowerAlpha},
};

}  // namespace

std::span<const OnnxOpRow> OnnxActivationRows() { return kRows; }

}  // namespace oncilla
