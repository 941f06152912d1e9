// Names of activations.
#include "engine/ops/math/activation.h"

namespace oncilla {
namespace {

constexpr std::string_view kNames[] = {"none",    "relu", "relu6", "gelu",     "gelu_tanh",
                                       "sigmoid", "silu", "tanh",  "hardswish"};

}  // namespace

Result<Activation> ActivationFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  return InvalidArgument("there is no activation '", name, "'");
}

std::string_view Name(Activation activation) { return kNames[static_cast<size_t>(activation)]; }

}  // namespace oncilla
