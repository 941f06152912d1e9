// Adds a loop's condition to its body.
#include "engine/compile/loop_round.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {
namespace {

// Whether the op computes the same from the same inputs, and nothing else tells that it ran.
bool IsPure(const Node& node) {
  return !node.op->traits.has_effects && !node.op->traits.is_random && !IsControl(node.op->name);
}

}  // namespace

std::string RoundName(const WhileAttrs& loop) { return StrCat(loop.body, ", then ", loop.cond); }

std::optional<Graph> RoundOf(const Graph& body, const Graph& cond) {
  if (cond.outputs().size() != 1 || cond.inputs().size() != body.outputs().size() ||
      !std::all_of(cond.nodes().begin(), cond.nodes().end(), IsPure)) {
    return std::nullopt;
  }
  Graph round = body;
  std::vector<ValueId> in_round(cond.values().size(), kNoValue);
  for (size_t i = 0; i < cond.inputs().size(); ++i) {
    in_round[Index(cond.inputs()[i].value)] = body.outputs()[i].value;
  }
  for (uint32_t v = 0; v < in_round.size(); ++v) {
    if (!cond.value(ValueId{v}).is_constant()) continue;
    in_round[v] = round.AddConstant(cond.fact(ValueId{v}).value);
  }
  for (const Node& node : cond.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? kNoValue : in_round[Index(id)]);
    }
    auto outputs =
        round.AddNode(node.name, node.op->name, node.attrs, std::move(inputs), node.sources);
    if (!outputs.ok() || outputs->size() != node.outputs.size()) return std::nullopt;
    for (size_t i = 0; i < outputs->size(); ++i) {
      in_round[Index(node.outputs[i])] = (*outputs)[i];
    }
  }
  round.AddOutput("goes on", in_round[Index(cond.outputs()[0].value)]);
  return round;
}

}  // namespace oncilla
