// Control flow and state: checks of the declared outputs, and rows.
#include "engine/ops/control.h"

#include <algorithm>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> Declared(const std::vector<std::string>& outputs) {
  Facts facts;
  for (const std::string& text : outputs) {
    ONCILLA_ASSIGN(Fact fact, ParseFact(text));
    facts.push_back(std::move(fact));
  }
  return facts;
}

Result<Facts> InferIf(const IfAttrs& attrs, std::span<const Fact> in) {
  if (attrs.branches.empty()) return InvalidArgument("there is no branch");
  if (in[0].dtype == DType::kBool) {
    if (attrs.branches.size() != 2) {
      return InvalidArgument("a bool chooses between 2 branches, not ", attrs.branches.size());
    }
  } else {
    ONCILLA_TRY(RequireInteger(in[0], "the selector"));
  }
  ONCILLA_TRY(RequireRank(in[0], 0, "the selector"));
  return Declared(attrs.outputs);
}

Result<Facts> InferWhile(const WhileAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(Facts out, Declared(attrs.outputs));
  if (out.size() != in.size()) {
    return InvalidArgument("a loop over ", in.size(), " values gives ", out.size());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i].kind != in[i].kind || out[i].dtype != in[i].dtype) {
      return InvalidArgument("value ", i, " of the loop begins as ", in[i], " and becomes ",
                             out[i]);
    }
  }
  return out;
}

Result<Facts> InferReadVariable(const ReadVariableAttrs& attrs, std::span<const Fact>) {
  return Declared({attrs.output});
}

Result<Facts> InferAssignVariable(const AssignVariableAttrs& attrs, std::span<const Fact>) {
  if (attrs.variable.empty()) return InvalidArgument("the variable has no name");
  return Facts{};
}

constexpr OpTraits Effect(int min_inputs, int max_inputs) {
  OpTraits traits;
  traits.inputs = {min_inputs, max_inputs};
  traits.has_effects = true;
  traits.host_only = true;
  traits.storage = StorageRule::kState;
  return traits;
}

constexpr OpDef kControlOps[] = {
    Op<InferAssignVariable>("AssignVariable", Effect(1, 1)),
    Op<InferIf>("If", Effect(1, kVariadic)),
    Op<InferReadVariable>("ReadVariable", Effect(0, 0)),
    Op<InferWhile>("While", Effect(0, kVariadic)),
};

}  // namespace

std::span<const OpDef> ControlOps() { return kControlOps; }

bool IsControl(std::string_view op) {
  return std::any_of(std::begin(kControlOps), std::end(kControlOps),
                     [&](const OpDef& def) { return def.name == op; });
}

std::vector<std::string> CalledFunctions(std::string_view op, const AttrMap& attrs) {
  if (op == "If") {
    const auto read = ReadAttrs<IfAttrs>(attrs);
    if (read.ok()) return read->branches;
  } else if (op == "While") {
    const auto read = ReadAttrs<WhileAttrs>(attrs);
    if (read.ok()) return {read->cond, read->body};
  }
  return {};
}

}  // namespace oncilla
