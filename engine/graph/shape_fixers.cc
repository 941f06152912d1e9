// Goes backwards from plan inputs to the values whose contents decide shapes. It stops at ops that
// read only shapes.
#include "engine/graph/shape_fixers.h"

namespace oncilla {

std::vector<bool> FindShapeFixers(const Graph& graph) {
  std::vector<bool> fixes(graph.values().size());
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.node(NodeId{static_cast<uint32_t>(n)});
    bool read_by_fixer = false;
    for (ValueId out : node.outputs) read_by_fixer |= fixes[Index(out)];
    const bool shape_only =
        node.op->name == "Shape" || node.op->name == "Size" || node.op->name == "Rank";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const bool plan_input = node.op->traits.IsPlanInput(i);
      if (!plan_input && (!read_by_fixer || shape_only)) continue;
      // Large tensors never decide a shape element by element.
      const Dim elements = graph.fact(node.inputs[i]).shape.elements();
      if (elements.known() && elements.size > kMaxKnownInts && !plan_input) continue;
      fixes[Index(node.inputs[i])] = true;
    }
  }
  return fixes;
}

}  // namespace oncilla
