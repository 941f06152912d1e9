// Names of activations, and the ops that compute them.
#include "engine/ops/math/activation.h"

namespace oncilla {
namespace {

struct ActivationRow {
  std::string_view name;  // the attribute's value
  std::string_view op;    // the op that computes it alone
};
// In the order of Activation. Gelu stands for two of them, which its attribute distinguishes.
constexpr ActivationRow kRows[] = {
    {"none", ""},     {"relu", "Relu"},  {"relu6", "Relu6"},
    {"gelu", "Gelu"}, {"gelu_tanh", ""}, {"sigmoid", "Sigmoid"},
    {"silu", "Silu"}, {"tanh", "Tanh"},  {"hardswish", "HardSwish"},
};

bool IsSet(const AttrMap& attrs, std::string_view name) {
  const auto it = attrs.find(name);
  const bool* value = it == attrs.end() ? nullptr : std::get_if<bool>(&it->second);
  return value != nullptr && *value;
}

}  // namespace

Result<Activation> ActivationFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (name == kRows[i].name) return static_cast<Activation>(i);
  }
  return InvalidArgument("there is no activation '", name, "'");
}

std::string_view Name(Activation activation) { return kRows[static_cast<size_t>(activation)].name; }

Activation ActivationOf(std::string_view op, const AttrMap& attrs) {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (op != kRows[i].op) continue;
    const auto found = static_cast<Activation>(i);
    const bool other = found == Activation::kGelu && IsSet(attrs, "approximate");
    return other ? Activation::kGeluTanh : found;
  }
  return Activation::kNone;
}

}  // namespace oncilla
