// No-ops: Identity, casts to the same type, and movements that change nothing.
#include <algorithm>

#include "engine/passes/axis_order.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// Whether an input is a constant whose numbers all pass the test.
template <typename Test>
bool AllOf(const Graph& graph, const Node& node, size_t input, Test test) {
  const auto numbers = NeedInts(graph.fact(node.inputs[input]), "numbers");
  return numbers.ok() && std::all_of(numbers->begin(), numbers->end(), test);
}

bool DoesNothing(const Graph& graph, const Node& node) {
  const Fact &in = graph.fact(node.inputs[0]), &out = graph.fact(node.outputs[0]);
  if (node.op->name == "Identity") return true;
  if (node.op->name == "Cast") return in.dtype == out.dtype;
  if (node.op->name == "Transpose") {
    const auto order = OrderOf(graph, node);
    return order.has_value() && IsSameOrder(*order);
  }
  if (node.op->name == "Concat") return node.inputs.size() == 1;
  if (node.op->name == "Expand") return SameShape(in.shape, out.shape);
  if (node.op->name == "Pad") {
    return AllOf(graph, node, 1, [](int64_t pad) { return pad == 0; });
  }
  if (node.op->name == "Slice") {  // a negative step reverses an axis
    return SameShape(in.shape, out.shape) &&
           (node.inputs.size() < 5 || node.inputs[4] == kNoValue ||
            AllOf(graph, node, 4, [](int64_t step) { return step > 0; }));
  }
  return node.op->traits.is_view && SameShape(in.shape, out.shape);
}

}  // namespace

Status RemoveNoOps(const Graph& graph, const PassContext&, Patch& patch) {
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty() || node.outputs.size() != 1 || node.inputs[0] == kNoValue) continue;
    if (DoesNothing(graph, node)) ONCILLA_TRY(patch.Replace(node.outputs[0], node.inputs[0]));
  }
  return Status();
}

}  // namespace oncilla
