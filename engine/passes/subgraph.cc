// Subgraphs: found by going backwards from their end, computed node by node.
#include "engine/passes/subgraph.h"

#include <cmath>

namespace oncilla {

std::vector<Subgraph> SubgraphsBefore(const Graph& graph, const Uses& uses, ValueId exit,
                                      const std::function<bool(const Node&)>& belongs,
                                      size_t max_nodes) {
  std::vector<Subgraph> found;
  const NodeId last = graph.value(exit).producer;
  if (last == kNoNode || !belongs(graph.node(last))) return found;
  std::set<uint32_t> nodes = {Index(last)};
  while (nodes.size() <= max_nodes) {
    std::map<uint32_t, int> reads;  // by value: how often the nodes read it from outside
    uint32_t latest = 0;
    int64_t latest_producer = -2;
    for (uint32_t n : nodes) {
      for (ValueId id : graph.node(NodeId{n}).inputs) {
        if (id == kNoValue || graph.value(id).is_constant()) continue;
        const NodeId producer = graph.value(id).producer;
        if (producer != kNoNode && nodes.contains(Index(producer))) continue;
        ++reads[Index(id)];
        const int64_t order = producer == kNoNode ? int64_t{-1} : int64_t{Index(producer)};
        if (order > latest_producer) latest_producer = order, latest = Index(id);
      }
    }
    if (reads.size() == 1) found.push_back({ValueId{latest}, exit, nodes});
    if (latest_producer < 0) break;
    const Node& next = graph.node(NodeId{static_cast<uint32_t>(latest_producer)});
    if (!belongs(next) || uses.Count(ValueId{latest}) != reads[latest]) break;
    nodes.insert(static_cast<uint32_t>(latest_producer));
  }
  return found;
}

Result<std::vector<Tensor>> ComputeValues(const Graph& graph, std::map<uint32_t, Tensor> given,
                                          std::span<const ValueId> wanted, Device& cpu) {
  std::map<uint32_t, Tensor>& values = given;
  std::set<uint32_t> nodes;  // in graph order
  std::vector<ValueId> open(wanted.begin(), wanted.end());
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNoValue || values.contains(Index(id))) continue;
    const Value& value = graph.value(id);
    if (value.is_constant() && value.fact.has_value()) {
      values.emplace(Index(id), value.fact.value);
      continue;
    }
    if (value.producer == kNoNode) return InvalidArgument("the value of an input is not given");
    if (!nodes.insert(Index(value.producer)).second) continue;
    const auto& inputs = graph.node(value.producer).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  for (uint32_t n : nodes) {
    const Node& node = graph.node(NodeId{n});
    std::vector<Tensor> in;
    Facts in_facts;
    for (ValueId id : node.inputs) {
      const bool absent = id == kNoValue;
      in.push_back(absent ? Tensor() : values.at(Index(id)));
      in_facts.push_back(absent                          ? Fact::Absent()
                         : graph.value(id).is_constant() ? graph.fact(id)
                                                         : Fact::Of(in.back()));
    }
    ONCILLA_ASSIGN(const Facts out,
                   InferNode(graph.ops(), node.name, node.op->name, node.attrs, in_facts));
    ONCILLA_ASSIGN(auto results,
                   cpu.Evaluate({node.op, &node.attrs, in_facts, out, node.name}, in));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      values.emplace(Index(node.outputs[i]), std::move(results[i]));
    }
  }
  std::vector<Tensor> out;
  for (ValueId id : wanted) out.push_back(values.at(Index(id)));
  return out;
}

Result<Tensor> ComputeSubgraph(const Graph& graph, const Subgraph& subgraph, const Tensor& entry,
                               Device& cpu) {
  ONCILLA_ASSIGN(auto exit,
                 ComputeValues(graph, {{Index(subgraph.entry), entry}}, {&subgraph.exit, 1}, cpu));
  return std::move(exit[0]);
}

bool Agree(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != DType::kF32 || a.desc() != b.desc()) return false;
  const auto x = a.As<float>(), y = b.As<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    // Written so that NaN never agrees with anything.
    if (!(std::abs(double{x[i]} - y[i]) <= tolerance * (1 + std::abs(double{y[i]})))) return false;
  }
  return true;
}

}  // namespace oncilla
