// What nodes need in order to compute on permuted axes, by the axis rules of their ops.
#include "engine/passes/reorder.h"

#include <algorithm>

#include "engine/ops/axes.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// A node's view with the facts of its inputs.
struct Seen {
  Seen(const Graph& graph, const Node& node)
      : inputs(graph.FactsOf(node.inputs)), view{node.op, &node.attrs, inputs, {}, node.name} {}
  Facts inputs;
  NodeView view;
};

// Whether a node of such an op stays the same on permuted axes, except that attributes or inputs
// that name axes change.
bool IsNamed(AxisRule rule) {
  switch (rule) {
    case AxisRule::kAxis:
    case AxisRule::kArg:
    case AxisRule::kAxisInput:
    case AxisRule::kAxesInput:
    case AxisRule::kReduce:
    case AxisRule::kSlice:
    case AxisRule::kPerAxis:
    case AxisRule::kStretches:
    case AxisRule::kPads:
    case AxisRule::kGathers:
      return true;
    default:
      return false;
  }
}

bool IsElementwise(const Node& node) { return node.op->traits.axes.rule == AxisRule::kElementwise; }

bool Given(const Node& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue;
}

// Packed elements are not reordered: kernels move whole bytes.
bool HoldsPacked(const Graph& graph, const Node& node) {
  const auto packed = [&](ValueId id) { return id != kNoValue && IsPacked(graph.fact(id).dtype); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), packed) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), packed);
}

std::optional<FreeOrder> FreeElementwise(const Graph& graph, const Node& node, int rank) {
  FreeOrder free;
  free.rank = rank;
  const size_t stretched = node.op->traits.axes.all_inputs ? node.inputs.size() : 1;
  for (size_t i = 0; i < stretched; ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const PartialShape& shape = graph.fact(node.inputs[i]).shape;
    if (!shape.ranked()) return {};
    (shape.rank() == rank ? free.carried : free.broadcast).push_back(static_cast<int>(i));
  }
  return free;
}

}  // namespace

std::optional<FreeOrder> FreeOrderOf(const Graph& graph, const Node& node) {
  const OpTraits& traits = node.op->traits;
  if (traits.has_effects || traits.is_random || traits.data_dependent || traits.host_only) {
    return {};
  }
  if (node.inputs.empty() || node.inputs[0] == kNoValue || HoldsPacked(graph, node)) return {};
  const Fact& out = graph.fact(node.outputs[0]);
  if (out.kind != ValueKind::kTensor || !out.shape.ranked()) return {};
  if (IsElementwise(node)) return FreeElementwise(graph, node, out.shape.rank());

  const Axes& rule = traits.axes;
  if (!IsNamed(rule.rule)) return {};
  const PartialShape& x = graph.fact(node.inputs[0]).shape;
  if (!x.ranked()) return {};
  FreeOrder free;
  free.rank = x.rank();
  const auto axes = NamedAxes(Seen(graph, node).view);
  if (!axes) return {};
  // One-dimensional indices replace one axis by another; any other rank changes the rank of the
  // result.
  if (rule.rule == AxisRule::kGathers &&
      (IntAttr(node, "batch_dims", 0) != 0 || graph.fact(node.inputs[1]).shape.rank() != 1)) {
    return {};
  }
  if ((rule.rule == AxisRule::kReduce || rule.rule == AxisRule::kArg) &&
      !BoolAttr(node, "keep_dims", false)) {
    free.dropped.assign(axes->begin(), axes->end());
    std::sort(free.dropped.begin(), free.dropped.end());
  }
  const auto left = free.rank - static_cast<int>(free.dropped.size());
  for (ValueId id : node.outputs) {
    const PartialShape& shape = graph.fact(id).shape;
    if (!shape.ranked() || shape.rank() != left) return {};
  }
  free.carried.push_back(0);
  for (size_t i = 1; rule.all_inputs && i < node.inputs.size(); ++i) {
    if (!Given(node, i) || graph.fact(node.inputs[i]).shape.rank() != free.rank) return {};
    free.carried.push_back(static_cast<int>(i));
  }
  return free;
}

Result<std::vector<ValueId>> AddReordered(const Graph& graph, NodeId id, const AxisOrder& order,
                                          std::vector<ValueId> inputs, Patch& patch) {
  const Node& node = graph.node(id);
  AttrMap attrs = node.attrs;
  const Axes& rule = node.op->traits.axes;
  if (IsElementwise(node)) return patch.AddNode(node.op->name, attrs, std::move(inputs), {id});

  const Seen seen(graph, node);
  const auto input = static_cast<size_t>(std::max<int>(rule.at, 0));
  const AxisOrder place = Inverse(order);  // where each axis has gone
  auto axes = NamedAxes(seen.view);
  if (!axes) return Internal("the axes of node '", node.name, "' are not known");
  for (int64_t& axis : *axes) axis = place[static_cast<size_t>(axis)];
  // Rewrite whatever names axes: an attribute, a list of axes, or a list with one entry per axis.
  switch (rule.rule) {
    case AxisRule::kAxis:
    case AxisRule::kArg:
    case AxisRule::kGathers:
      attrs["axis"] = (*axes)[0];
      break;
    case AxisRule::kAxisInput:
    case AxisRule::kAxesInput:
    case AxisRule::kSlice: {
      const bool scalar = Given(node, input) && graph.fact(inputs[input]).shape.rank() == 0;
      if (inputs.size() <= input) inputs.resize(input + 1, kNoValue);
      inputs[input] =
          patch.AddConstant(scalar ? Tensor::ScalarInt64((*axes)[0]) : Tensor::Int64s(*axes));
      break;
    }
    case AxisRule::kReduce:
      // An empty list means all axes or none, and stays as it is.
      if (Given(node, input) && !axes->empty()) {
        std::sort(axes->begin(), axes->end());
        inputs[input] = patch.AddConstant(Tensor::Int64s(*axes));
      }
      break;
    case AxisRule::kPerAxis:
    case AxisRule::kStretches:
    case AxisRule::kPads: {
      const auto old = KnownList(seen.view, input);
      if (!old) return Internal("a list of node '", node.name, "' is not known");
      std::vector<int64_t> list;
      for (size_t at = 0; at < old->size(); at += order.size()) {
        for (int axis : order) list.push_back((*old)[at + static_cast<size_t>(axis)]);
      }
      inputs[input] = patch.AddConstant(Tensor::Int64s(list));
      break;
    }
    default:
      return Internal("the axes of node '", node.name, "' have no order");
  }
  return patch.AddNode(node.op->name, std::move(attrs), std::move(inputs), {id});
}

}  // namespace oncilla
