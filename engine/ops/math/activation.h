// The activations that MatMul and Conv can apply to their result, by name and as exact formulas.
//
// The names are the values of the attribute `activation`; every backend's own epilogue is tested
// against the formulas.
#pragma once

#include <cmath>
#include <string_view>

#include "engine/ops/attrs.h"

namespace oncilla {

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kGelu,      // x/2 (1 + erf(x / sqrt 2))
  kGeluTanh,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kSigmoid,
  kSilu,  // x sigmoid(x)
  kTanh,
  kHardSwish,  // x min(max(x + 3, 0), 6) / 6
};

// "none", "relu", "relu6", "gelu", "gelu_tanh", "sigmoid", "silu", "tanh", "hardswish".
Result<Activation> ActivationFromName(std::string_view name);
std::string_view Name(Activation activation);

// The activation that an op with these attributes computes; kNone if it is not one.
Activation ActivationOf(std::string_view op, const AttrMap& attrs);

// NaN stays NaN.
inline double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case Activation::kGelu:
      return x == -INFINITY ? 0 : 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case Activation::kGeluTanh:
      if (std::isinf(x)) return x < 0 ? 0 : x;
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x == -INFINITY ? 0 : x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kHardSwish:
      return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
  }
  return x;
}

}  // namespace oncilla
