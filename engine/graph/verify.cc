// The invariants of a graph, checked one after the other.
#include "engine/graph/verify.h"

#include <set>

namespace oncilla {
namespace {

// A stored fact may know less or more than fresh inference, but must not contradict it.
bool Agrees(const Fact& a, const Fact& b) {
  return a.kind == b.kind && a.dtype == b.dtype && MergeShapes(a.shape, b.shape).ok();
}

}  // namespace

Status Verify(const Graph& graph) {
  auto fail = [](const auto&... parts) { return Internal("the graph is broken: ", parts...); };
  const size_t values = graph.values().size();
  std::set<std::string_view> names;
  std::vector<bool> ready(values);
  for (uint32_t i = 0; i < values; ++i) {
    const Value& value = graph.value(ValueId{i});
    if (value.producer == kNoNode) {
      ready[i] = true;
      if (value.is_constant() && !value.fact.has_value()) return fail("constant %", i, " is empty");
    }
    if (!value.name.empty() && !names.insert(value.name).second) {
      return fail("two values are called '", value.name, "'");
    }
  }
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      if (Index(id) >= values)
        return fail("node '", node.name, "' reads a value that is not there");
      if (!ready[Index(id)]) return fail("node '", node.name, "' reads what is computed later");
    }
    auto facts =
        InferNode(graph.ops(), node.name, node.op->name, node.attrs, graph.FactsOf(node.inputs));
    if (!facts.ok()) return fail(Message(facts.status()));
    if (facts->size() != node.outputs.size()) {
      return fail("node '", node.name, "' has ", node.outputs.size(), " outputs, inference says ",
                  facts->size());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (Index(id) >= values)
        return fail("node '", node.name, "' writes a value that is not there");
      const Value& value = graph.value(id);
      if (value.producer != NodeId{n} || value.output != static_cast<int>(i)) {
        return fail("output ", i, " of node '", node.name, "' does not know its producer");
      }
      if (!Agrees(value.fact, (*facts)[i])) {
        return fail("output ", i, " of node '", node.name, "' is ", value.fact, ", inference says ",
                    (*facts)[i]);
      }
      ready[Index(id)] = true;
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    if (Index(output.value) >= values || !ready[Index(output.value)]) {
      return fail("output '", output.name, "' has no value");
    }
  }
  return Status();
}

}  // namespace oncilla
