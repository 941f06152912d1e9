// Queries on graphs.
#include "engine/passes/rewrite.h"

#include <algorithm>

namespace oncilla {

Uses::Uses(const Graph& graph)
    : graph_(graph), counts_(graph.values().size()), readers_(graph.values().size(), kNoNode) {
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    for (ValueId id : graph.node(NodeId{n}).inputs) {
      if (id == kNoValue) continue;
      ++counts_[Index(id)];
      readers_[Index(id)] = NodeId{n};
    }
  }
  // A fetched value must stay as it is, which counts as another use.
  for (const NamedValue& output : graph.outputs()) counts_[Index(output.value)] += 2;
}

NodeId IdOf(const Graph& graph, ValueId output) { return graph.value(output).producer; }

const Node* ProducerIf(const Graph& graph, ValueId id, std::string_view op) {
  if (id == kNoValue) return nullptr;
  const NodeId producer = graph.value(id).producer;
  if (producer == kNoNode) return nullptr;
  const Node& node = graph.node(producer);
  return node.op->name == op ? &node : nullptr;
}

int64_t IntAttr(const Node& node, std::string_view name, int64_t otherwise) {
  auto it = node.attrs.find(name);
  if (it == node.attrs.end()) return otherwise;
  const auto* value = std::get_if<int64_t>(&it->second);
  return value == nullptr ? otherwise : *value;
}

bool BoolAttr(const Node& node, std::string_view name, bool otherwise) {
  auto it = node.attrs.find(name);
  if (it == node.attrs.end()) return otherwise;
  const auto* value = std::get_if<bool>(&it->second);
  return value == nullptr ? otherwise : *value;
}

std::string StringAttr(const Node& node, std::string_view name, std::string_view otherwise) {
  auto it = node.attrs.find(name);
  if (it == node.attrs.end()) return std::string(otherwise);
  const auto* value = std::get_if<std::string>(&it->second);
  return value == nullptr ? std::string(otherwise) : *value;
}

bool SameShape(const PartialShape& a, const PartialShape& b) {
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!a[i].Same(b[i])) return false;
  }
  return true;
}

bool AcceptedEverywhere(const Graph& graph, const PassContext& context, const Patch& patch,
                        std::string_view op, const AttrMap& attrs,
                        std::span<const ValueId> inputs) {
  Facts in;
  for (ValueId id : inputs) in.push_back(patch.fact(id));
  const auto out = InferNode(graph.ops(), op, op, attrs, in);
  if (!out.ok()) return false;
  const NodeView view{graph.ops().Find(op), &attrs, in, *out, op};
  return std::all_of(context.devices.begin(), context.devices.end(),
                     [&](Device* device) { return device->CanRun(view).ok(); });
}

int ConstantInput(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) return -1;
  const bool first = graph.value(node.inputs[0]).is_constant();
  const bool second = graph.value(node.inputs[1]).is_constant();
  return first == second ? -1 : second ? 1 : 0;
}

bool IsPerChannel(const PartialShape& constant, const PartialShape& value) {
  if (!constant.known() || !value.ranked()) return false;
  if (constant.elements().size == 1) return constant.rank() <= value.rank();
  if (constant.rank() == 0 || constant.rank() > value.rank()) return false;
  for (int i = 0; i + 1 < constant.rank(); ++i) {
    if (constant[i].size != 1) return false;
  }
  return constant[constant.rank() - 1].Same(value[value.rank() - 1]);
}

}  // namespace oncilla
