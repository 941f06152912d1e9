// Facts are inferred once more with the sizes known.
#include "tools/oncilla/work.h"

#include <algorithm>

namespace oncilla::tool {
namespace {

bool Starts(std::string_view op, std::string_view prefix) { return op.starts_with(prefix); }

// Ops that look at every input element once or a few times.
bool Reduces(std::string_view op) {
  return Starts(op, "Reduce") || Starts(op, "Arg") || Starts(op, "Cum") || op == "Softmax" ||
         op.ends_with("Norm") || op == "LpNormalize" || op == "LRN" || op.ends_with("Pool") ||
         op == "TopK";
}

double Elements(const Fact& fact) { return static_cast<double>(fact.desc().elements()); }

double Operations(const NodeView& node) {
  const std::string_view op = node.op->name;
  const auto size = [&](const Fact& fact, int axis) {
    const Shape shape = fact.desc().shape;
    return static_cast<double>(shape[axis < 0 ? axis + shape.rank() : axis]);
  };
  if (op == "Conv") {
    return 2 * Elements(node.outputs[0]) * Elements(node.inputs[1]) /
           std::max(1.0, size(node.inputs[1], -1));
  }
  if (op == "ConvTranspose") {
    return 2 * Elements(node.inputs[0]) * Elements(node.inputs[1]) /
           std::max(1.0, size(node.inputs[1], -1));
  }
  if (op == "MatMul") {
    const int rank = node.inputs[0].shape.rank();
    const auto it = node.attrs->find("transpose_a");
    const bool swapped = rank > 1 && it != node.attrs->end() && std::get<bool>(it->second);
    return 2 * Elements(node.outputs[0]) * size(node.inputs[0], swapped ? -2 : -1);
  }
  if (node.op->elementwise) return Elements(node.outputs[0]);
  if (op == "FusedElementwise") {
    const auto it = node.attrs->find("program");
    double steps = 1;
    if (it != node.attrs->end()) {
      if (const auto* list = std::get_if<std::vector<std::string>>(&it->second)) {
        steps = static_cast<double>(list->size());
      }
    }
    return steps * Elements(node.outputs[0]);
  }
  return Reduces(op) ? Elements(node.inputs[0]) : 0;
}

// The node's outputs, with their values where they are few integers that fix shapes further on.
Facts Infer(const Graph& graph, const Node& node, std::span<const Fact> in, Device& cpu) {
  auto inferred = node.op->infer(node.attrs, in);
  Facts out = inferred.ok() ? *std::move(inferred) : graph.FactsOf(node.outputs);
  const bool small = !out.empty() && out[0].fixed() && out[0].desc().elements() <= kMaxKnownInts &&
                     (IsInteger(out[0].dtype) || out[0].dtype == DType::kBool);
  const bool known =
      std::all_of(in.begin(), in.end(), [](const Fact& f) { return f.absent() || f.has_value(); });
  if (!small || !known || out[0].has_value()) return out;
  std::vector<Tensor> values;
  for (const Fact& fact : in) values.push_back(fact.value);
  auto computed = cpu.Evaluate({node.op, &node.attrs, in, out, node.name}, values);
  for (size_t i = 0; computed.ok() && i < out.size(); ++i) out[i].value = (*computed)[i];
  return out;
}

}  // namespace

GraphWork WorkOf(const Graph& graph, std::span<const Fact> inputs, Device& cpu) {
  GraphWork work;
  Facts facts(graph.values().size());
  for (size_t i = 0; i < facts.size(); ++i) facts[i] = graph.values()[i].fact;
  for (size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i) {
    facts[Index(graph.inputs()[i].value)] = inputs[i];
  }
  for (const Node& node : graph.nodes()) {
    Facts in;
    for (ValueId id : node.inputs) in.push_back(id == kNoValue ? Fact::Absent() : facts[Index(id)]);
    Facts out = Infer(graph, node, in, cpu);
    NodeWork one;
    const auto known = [](const Fact& fact) { return fact.absent() || fact.fixed(); };
    one.known = std::all_of(in.begin(), in.end(), known) &&
                std::all_of(out.begin(), out.end(), known) && !out.empty();
    if (one.known) {
      one.operations = Operations({node.op, &node.attrs, in, out, node.name});
      for (const Facts* facts_of : {&in, &out}) {
        for (const Fact& fact : *facts_of) {
          if (!fact.absent()) one.bytes += static_cast<double>(fact.desc().bytes());
        }
      }
      work.operations += one.operations;
    } else {
      ++work.unknown_nodes;
    }
    work.nodes.push_back(one);
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      facts[Index(node.outputs[i])] = std::move(out[i]);
    }
  }
  return work;
}

}  // namespace oncilla::tool
