// Infers the facts of all nodes again, with known sizes, and adds up the work.
#include "tools/oncilla/commands/work.h"

#include <algorithm>

#include "engine/ops/axes.h"
#include "engine/ops/nn/attention.h"
#include "engine/ops/nn/fused_conv.h"

namespace oncilla::tool {
namespace {

// "3x3x64x64"; "1" for a scalar.
std::string ShapeText(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += StrCat(text.empty() ? "" : "x", size);
  return text.empty() ? "1" : text;
}

double Elements(const Fact& fact) { return static_cast<double>(fact.desc().elements()); }

// Two operations for each weight of an output channel and element of each of its convolutions.
double OfInvertedResidual(const NodeView& node) {
  const auto attrs = ReadAttrs<InvertedResidualAttrs>(*node.attrs);
  if (!attrs.ok()) return 0;
  const auto g = GeometryOf(*attrs, node);
  if (!g.ok()) return 0;
  const auto filtered = static_cast<double>(SaturatingMul(
      g->depthwise.batch, SaturatingMul(g->depthwise.out_pixels(), g->depthwise.in_channels)));
  double operations = filtered * static_cast<double>(g->depthwise.taps() + g->columns);
  if (g->expands) {
    operations += static_cast<double>(SaturatingMul(g->expand.batch, g->expand.out_pixels())) *
                  static_cast<double>(g->expand.out_channels) *
                  static_cast<double>(g->expand.taps() * g->expand.in_channels);
  }
  return 2 * operations;
}

double Operations(const NodeView& node) {
  if (node.op->name == "InvertedResidual") return OfInvertedResidual(node);
  const auto last = [](const Fact& fact, int from_end) {
    const Shape shape = fact.desc().shape;
    const int axis = static_cast<int>(shape.rank()) - from_end;
    return axis < 0 ? 1.0 : static_cast<double>(shape[axis]);
  };
  const auto weights = [&] {  // of each channel
    return Elements(node.inputs[1]) / std::max(1.0, last(node.inputs[1], 1));
  };
  switch (node.op->traits.work) {
    case Work::kNone:
      return 0;
    case Work::kPerOutput:
      return Elements(node.outputs[0]);
    case Work::kPerInput:
      return Elements(node.inputs[0]);
    case Work::kPerStep: {
      const auto steps = AttrOr<std::vector<std::string>>(*node.attrs, "program", {""});
      return static_cast<double>(steps.size()) * Elements(node.outputs[0]);
    }
    case Work::kTaps:
      return 2 * Elements(node.outputs[0]) * weights();
    case Work::kTapsBackwards:
      return 2 * Elements(node.inputs[0]) * weights();
    case Work::kProduct: {
      const bool swapped =
          node.inputs[0].shape.rank() > 1 && AttrOr(*node.attrs, "transpose_a", false);
      return 2 * Elements(node.outputs[0]) * last(node.inputs[0], swapped ? 2 : 1);
    }
    case Work::kAttention: {
      const auto attrs = ReadAttrs<AttentionAttrs>(*node.attrs);
      if (!attrs.ok()) return 0;
      const AttentionGeometry g = GeometryOf(*attrs, node.inputs);
      const double pairs = static_cast<double>(g.batch) * static_cast<double>(g.heads) *
                           static_cast<double>(g.rows) * static_cast<double>(g.keys);
      return 2 * pairs * static_cast<double>(g.size + g.value_size);
    }
  }
  return 0;
}

// The node's outputs, with their values if they are a few integers that later shapes depend on.
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

void VisitNodes(const Graph& graph, std::span<const Fact> inputs, Device& cpu,
                const NodeVisitor& visit) {
  Facts facts(graph.values().size());
  for (size_t i = 0; i < facts.size(); ++i) facts[i] = graph.values()[i].fact;
  for (size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i) {
    facts[Index(graph.inputs()[i].value)] = inputs[i];
  }
  for (const Node& node : graph.nodes()) {
    Facts in;
    for (ValueId id : node.inputs) in.push_back(id == kNoValue ? Fact::Absent() : facts[Index(id)]);
    Facts out = Infer(graph, node, in, cpu);
    const auto known = [](const Fact& fact) { return fact.absent() || fact.fixed(); };
    visit({node.op, &node.attrs, in, out, node.name},
          std::all_of(in.begin(), in.end(), known) && std::all_of(out.begin(), out.end(), known) &&
              !out.empty());
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      facts[Index(node.outputs[i])] = std::move(out[i]);
    }
  }
}

NodeWork WorkOf(const NodeView& node) {
  NodeWork one;
  one.known = true;
  one.operations = Operations(node);
  for (const std::span<const Fact> facts : {node.inputs, node.outputs}) {
    if (facts.data() == node.outputs.data()) one.shapes += " -> ";
    bool first = true;
    for (const Fact& fact : facts) {
      if (fact.absent()) continue;
      const auto bytes = static_cast<double>(fact.desc().bytes());
      one.bytes += bytes;
      if (fact.constant) one.constant_bytes += bytes;
      if (one.dtype == DType::kInvalid) one.dtype = fact.dtype;
      one.shapes += (first ? "" : ", ") + ShapeText(fact.desc().shape);
      first = false;
    }
  }
  return one;
}

GraphWork WorkOf(const Graph& graph, std::span<const Fact> inputs, Device& cpu) {
  GraphWork work;
  VisitNodes(graph, inputs, cpu, [&](const NodeView& node, bool known) {
    work.nodes.push_back(known ? WorkOf(node) : NodeWork());
    work.operations += work.nodes.back().operations;
    work.unknown_nodes += known ? 0 : 1;
  });
  return work;
}

}  // namespace oncilla::tool
