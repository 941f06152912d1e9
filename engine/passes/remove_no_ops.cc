// No-ops: Identity, casts to the same type, reshapes and transposes that change nothing.
#include "engine/passes/axis_order.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

bool SameShape(const PartialShape& a, const PartialShape& b) {
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!a[i].Same(b[i])) return false;
  }
  return true;
}

bool DoesNothing(const Graph& graph, const Node& node) {
  const Fact &in = graph.fact(node.inputs[0]), &out = graph.fact(node.outputs[0]);
  if (node.op->name == "Identity") return true;
  if (node.op->name == "Cast") return in.dtype == out.dtype;
  if (node.op->name == "Transpose") {
    const auto order = OrderOf(graph, node);
    return order.has_value() && IsSameOrder(*order);
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
