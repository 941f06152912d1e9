// What each op needs to compute on reordered axes, as a table of rules.
#include "engine/passes/reorder.h"

#include <algorithm>

#include "engine/ops/attrs.h"
#include "engine/ops/reduce.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// How an op names axes.
enum class Rule {
  kAxis,       // attribute `axis`
  kArg,        // attribute `axis`, which goes away without keep_dims
  kAxisInput,  // an input that holds one axis
  kAxesInput,  // an input that lists axes
  kReduce,     // an input that lists axes, all of them when absent; keep_dims
  kSlice,      // axes in input 3, the leading ones when absent
  kPerAxis,    // an input with one number for each axis
  kPads,       // an input with two numbers for each axis: all begins, then all ends
};

struct Row {
  std::string_view op;
  Rule rule;
  int64_t axis = 0;  // the default of attribute `axis`, or which input names the axes
  bool all_inputs = false;
};

constexpr Row kRows[] = {
    {"Softmax", Rule::kAxis, -1},
    {"LpNormalize", Rule::kAxis, -1},
    {"LRN", Rule::kAxis, -1},
    {"BatchNorm", Rule::kAxis, -1},
    {"Concat", Rule::kAxis, 0, true},
    {"Split", Rule::kAxis, 0},
    {"TopK", Rule::kAxis, -1},
    {"Gather", Rule::kAxis, 0},
    {"ArgMax", Rule::kArg, 0},
    {"ArgMin", Rule::kArg, 0},
    {"CumSum", Rule::kAxisInput, 1},
    {"CumProd", Rule::kAxisInput, 1},
    {"Reverse", Rule::kAxesInput, 1},
    {"Roll", Rule::kAxesInput, 2},
    {"ReduceSum", Rule::kReduce, 1},
    {"ReduceMean", Rule::kReduce, 1},
    {"ReduceMax", Rule::kReduce, 1},
    {"ReduceMin", Rule::kReduce, 1},
    {"ReduceProd", Rule::kReduce, 1},
    {"ReduceAll", Rule::kReduce, 1},
    {"ReduceAny", Rule::kReduce, 1},
    {"ReduceL1", Rule::kReduce, 1},
    {"ReduceL2", Rule::kReduce, 1},
    {"ReduceLogSum", Rule::kReduce, 1},
    {"ReduceLogSumExp", Rule::kReduce, 1},
    {"ReduceSumSquare", Rule::kReduce, 1},
    {"Slice", Rule::kSlice, 3},
    {"Tile", Rule::kPerAxis, 1},
    {"Expand", Rule::kPerAxis, 1},
    {"Pad", Rule::kPads, 1},
};

const Row* FindRow(std::string_view op) {
  for (const Row& row : kRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

bool IsElementwise(const Node& node) {
  return node.op->elementwise != nullptr || node.op->name == "FusedElementwise";
}

bool Given(const Node& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue;
}

// Input i as whole numbers that are all known.
std::optional<std::vector<int64_t>> Ints(const Graph& graph, const Node& node, size_t i) {
  auto ints = NeedInts(graph.fact(node.inputs[i]), "axes");
  if (!ints.ok()) return {};
  return *std::move(ints);
}

// The same axes, each in [0, rank).
std::optional<std::vector<int64_t>> Axes(std::optional<std::vector<int64_t>> axes, int rank) {
  if (!axes) return {};
  for (int64_t& axis : *axes) {
    const auto at = NormalizeAxis(axis, rank);
    if (!at.ok()) return {};
    axis = *at;
  }
  return axes;
}

// The axes that a node names, normalised; nothing when they are not known.
std::optional<std::vector<int64_t>> NamedAxes(const Graph& graph, const Node& node, const Row& row,
                                              int rank) {
  const auto input = static_cast<size_t>(row.axis);
  switch (row.rule) {
    case Rule::kAxis:
    case Rule::kArg:
      return Axes(std::vector<int64_t>{IntAttr(node, "axis", row.axis)}, rank);
    case Rule::kAxisInput:
    case Rule::kAxesInput:
      return Axes(Ints(graph, node, input), rank);
    case Rule::kReduce: {
      const auto attrs = ReadAttrs<ReduceAttrs>(node.attrs);
      if (!attrs.ok()) return {};
      if (Given(node, input) && !Ints(graph, node, input)) return {};
      const auto axes =
          ReducedAxes(*attrs, Given(node, input) ? &graph.fact(node.inputs[input]) : nullptr, rank);
      if (!axes.ok()) return {};
      return std::vector<int64_t>(axes->begin(), axes->end());
    }
    case Rule::kSlice: {
      if (Given(node, input)) return Axes(Ints(graph, node, input), rank);
      const PartialShape& starts = graph.fact(node.inputs[1]).shape;
      if (!starts.known() || starts.rank() != 1 || starts[0].size > rank) return {};
      std::vector<int64_t> axes;
      for (int64_t i = 0; i < starts[0].size; ++i) axes.push_back(i);
      return axes;
    }
    case Rule::kPerAxis:
    case Rule::kPads: {
      const auto list = Ints(graph, node, input);
      const size_t per_axis = row.rule == Rule::kPads ? 2 : 1;
      if (!list || list->size() != per_axis * static_cast<size_t>(rank)) return {};
      return std::vector<int64_t>();
    }
  }
  return {};
}

std::optional<FreeOrder> FreeElementwise(const Graph& graph, const Node& node, int rank) {
  FreeOrder free;
  free.rank = rank;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
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
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return {};
  const Fact& out = graph.fact(node.outputs[0]);
  if (out.kind != ValueKind::kTensor || !out.shape.ranked()) return {};
  if (IsElementwise(node)) return FreeElementwise(graph, node, out.shape.rank());

  const Row* row = FindRow(node.op->name);
  if (row == nullptr) return {};
  const PartialShape& x = graph.fact(node.inputs[0]).shape;
  if (!x.ranked()) return {};
  FreeOrder free;
  free.rank = x.rank();
  const auto axes = NamedAxes(graph, node, *row, free.rank);
  if (!axes) return {};
  // A list of indices is one axis for another; anything else changes the rank.
  if (row->op == "Gather" &&
      (IntAttr(node, "batch_dims", 0) != 0 || graph.fact(node.inputs[1]).shape.rank() != 1)) {
    return {};
  }
  if ((row->rule == Rule::kReduce || row->rule == Rule::kArg) &&
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
  for (size_t i = 1; row->all_inputs && i < node.inputs.size(); ++i) {
    if (!Given(node, i) || graph.fact(node.inputs[i]).shape.rank() != free.rank) return {};
    free.carried.push_back(static_cast<int>(i));
  }
  return free;
}

Result<std::vector<ValueId>> AddReordered(const Graph& graph, NodeId id, const AxisOrder& order,
                                          std::vector<ValueId> inputs, Patch& patch) {
  const Node& node = graph.node(id);
  AttrMap attrs = node.attrs;
  const Row* row = IsElementwise(node) ? nullptr : FindRow(node.op->name);
  if (row == nullptr) return patch.AddNode(node.op->name, attrs, std::move(inputs), {id});

  const auto input = static_cast<size_t>(row->axis);
  const AxisOrder place = Inverse(order);  // where an axis has gone
  auto axes = NamedAxes(graph, node, *row, static_cast<int>(order.size()));
  if (!axes) return Internal("the axes of node '", node.name, "' are not known");
  for (int64_t& axis : *axes) axis = place[static_cast<size_t>(axis)];
  switch (row->rule) {
    case Rule::kAxis:
    case Rule::kArg:
      attrs["axis"] = (*axes)[0];
      break;
    case Rule::kAxisInput:
    case Rule::kAxesInput:
    case Rule::kSlice: {
      const bool scalar = Given(node, input) && graph.fact(inputs[input]).shape.rank() == 0;
      if (inputs.size() <= input) inputs.resize(input + 1, kNoValue);
      inputs[input] =
          patch.AddConstant(scalar ? Tensor::ScalarInt64((*axes)[0]) : Tensor::Int64s(*axes));
      break;
    }
    case Rule::kReduce:
      // No axes mean all of them or none, and stay that.
      if (Given(node, input) && !axes->empty()) {
        std::sort(axes->begin(), axes->end());
        inputs[input] = patch.AddConstant(Tensor::Int64s(*axes));
      }
      break;
    case Rule::kPerAxis:
    case Rule::kPads: {
      const auto old = Ints(graph, node, input);
      if (!old) return Internal("a list of node '", node.name, "' is not known");
      std::vector<int64_t> list;
      for (size_t at = 0; at < old->size(); at += order.size()) {
        for (int axis : order) list.push_back((*old)[at + static_cast<size_t>(axis)]);
      }
      inputs[input] = patch.AddConstant(Tensor::Int64s(list));
      break;
    }
  }
  return patch.AddNode(node.op->name, std::move(attrs), std::move(inputs), {id});
}

}  // namespace oncilla
