// ONNX's activations, and Dropout, which does nothing outside training.
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

// gamma * Elu with alpha; for the usual constants there is an op of its own.
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

// Training mode: elements chosen by a random stream become zero, and the rest is scaled up. The
// ratio, and whether it is training at all, may be computed.
Result<Values> DropAtRandom(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t seed, b.Int("seed", 0));
  RandomAttrs attrs;
  attrs.distribution = "uniform";
  attrs.to = DType::kF32;
  // The canonical op uses seed 0 for "no seed", so a given seed is mapped to an odd number.
  if (b.HasAttr("seed")) attrs.seed = static_cast<int64_t>(static_cast<uint64_t>(seed) * 2 + 1);
  ONCILLA_ASSIGN(ValueId ratio, b.Scalar(DType::kF32, 0.5));
  if (b.has(1)) {
    ONCILLA_ASSIGN(ratio, b.Cast(b.in(1), DType::kF32, "ratio"));
  }
  ONCILLA_ASSIGN(const ValueId trains, b.Cast(b.in(2), DType::kBool, "trains"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(ratio, b.Add("Where", {}, {trains, ratio, none}, "used_ratio"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  ONCILLA_ASSIGN(const ValueId chance, b.Add("RandomStream", attrs, {shape}, "chance"));
  ONCILLA_ASSIGN(const ValueId mask, b.Add("GreaterEqual", {}, {chance, ratio}, "mask"));
  ONCILLA_ASSIGN(const ValueId rest, b.Add("Sub", {}, {one, ratio}, "rest"));
  ONCILLA_ASSIGN(ValueId factor, b.Add("Div", {}, {one, rest}, "factor"));
  ONCILLA_ASSIGN(factor, b.Cast(factor, b.dtype(), "typed_factor"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {b.in(0), factor}, "scaled"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Where", {}, {mask, scaled, zero}));
  return Values{y, mask};
}

Result<Values> LowerDropout(OnnxLowering& b) {
  b.Ignore("ratio");
  if (b.version() < 7) {
    b.Ignore("is_test");  // running a model is not training, whatever it was saved as
  } else if (b.version() >= 12 && b.has(2)) {
    if (!b.in_fact(2).has_value()) return DropAtRandom(b);
    ONCILLA_ASSIGN(const auto flag, ToInt64s(b.in_fact(2).value));
    if (flag.size() == 1 && flag[0] != 0) return DropAtRandom(b);
  }
  b.Ignore("seed");
  ONCILLA_ASSIGN(const ValueId y, b.Add("Identity", {}, {b.in(0)}));
  if (!b.wants(1)) return Values{y, kNoValue};
  // The mask of kept elements: bool from opset 10 on, before that of the data's type.
  ONCILLA_ASSIGN(const ValueId kept, b.Scalar(b.version() < 10 ? b.dtype() : DType::kBool, 1));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  ONCILLA_ASSIGN(const ValueId mask, b.Add("Fill", {}, {shape, kept}, "mask"));
  return Values{y, mask};
}

constexpr OnnxOpRow kRows[] = {
    {"Celu", 12, kNewestOnnxOpset, 1, "", LowerAlpha},
    {"Dropout", 1, kNewestOnnxOpset, 1, "", LowerDropout},
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
    {"ThresholdedRelu", 10, kNewestOnnxOpset, 1, "", LowerAlpha},
};

}  // namespace

std::span<const OnnxOpRow> OnnxActivationRows() { return kRows; }

}  // namespace oncilla
