// Permutations of axes.
#include "engine/passes/axis_order.h"

#include <algorithm>
#include <numeric>

#include "engine/ops/movement.h"

namespace oncilla {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// The order in which a Reshape takes its input's axes, when it only moves axes of size 1.
std::optional<AxisOrder> OrderOfReshape(const PartialShape& from, const PartialShape& to) {
  if (!from.ranked() || !to.ranked() || from.rank() != to.rank()) return {};
  const int rank = from.rank();
  // The sizes other than 1, and then the ones, are matched in the order in which they stand.
  AxisOrder order(At(rank), -1);
  int next_one = 0, next_other = 0;
  const auto find = [&](bool one, int at) {
    while (at < rank && (from[at].size == 1) != one) ++at;
    return at;
  };
  for (int i = 0; i < rank; ++i) {
    const bool one = to[i].size == 1;
    int& next = one ? next_one : next_other;
    const int axis = find(one, next);
    if (axis == rank || !from[axis].Same(to[i])) return {};
    order[At(i)] = axis;
    next = axis + 1;
  }
  return order;
}

// The sizes that a Reshape asks for to give these axes: 0 copies a size that is not known, where it
// keeps its place. One that moves can only be what is left, which takes all others to be known.
std::optional<std::vector<int64_t>> ReshapeSizes(const PartialShape& shape,
                                                 const AxisOrder& order) {
  std::vector<int64_t> sizes;
  bool copies = false, empty = false;
  int open = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const Dim& size = shape[order[i]];
    empty |= size.size == 0;
    const bool stays = order[i] == static_cast<int>(i);
    copies |= !size.known() && stays;
    open += !size.known() && !stays;
    sizes.push_back(size.known() ? size.size : stays ? 0 : -1);
  }
  if (open > 1 || (empty && (copies || open > 0)) || (copies && open > 0)) return {};
  return sizes;
}

}  // namespace

AxisOrder SameOrder(int rank) {
  AxisOrder order(At(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool IsSameOrder(const AxisOrder& order) { return std::is_sorted(order.begin(), order.end()); }

AxisOrder Compose(const AxisOrder& first, const AxisOrder& second) {
  AxisOrder order;
  for (int axis : second) order.push_back(first[At(axis)]);
  return order;
}

AxisOrder Inverse(const AxisOrder& order) {
  AxisOrder inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[At(order[i])] = static_cast<int>(i);
  return inverse;
}

PartialShape Reorder(const PartialShape& shape, const AxisOrder& order) {
  std::vector<Dim> dims;
  for (int axis : order) dims.push_back(shape[axis]);
  return PartialShape(std::move(dims));
}

bool KeepsBytes(const PartialShape& shape, const AxisOrder& order) {
  int last = -1;
  for (int axis : order) {
    if (shape[axis].size == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return ReshapeSizes(shape, order).has_value();
}

std::optional<AxisOrder> OrderOf(const Graph& graph, const Node& node) {
  if (node.op->name != "Transpose" && node.op->name != "Reshape") return {};
  const PartialShape& from = graph.fact(node.inputs[0]).shape;
  if (!from.ranked()) return {};
  if (node.op->name == "Reshape") {
    return OrderOfReshape(from, graph.fact(node.outputs[0]).shape);
  }
  AxisOrder order;
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) {
    for (int i = from.rank(); i-- > 0;) order.push_back(i);
    return order;
  }
  const auto axes = NeedInts(graph.fact(node.inputs[1]), "perm");
  if (!axes.ok() || static_cast<int>(axes->size()) != from.rank()) return {};
  for (int64_t axis : *axes) {
    const auto at = NormalizeAxis(axis, from.rank());
    if (!at.ok()) return {};
    order.push_back(*at);
  }
  return order;
}

Result<ValueId> AddTranspose(Patch& patch, ValueId x, const AxisOrder& order,
                             std::vector<NodeId> from) {
  if (IsSameOrder(order)) return x;
  const PartialShape shape = patch.fact(x).shape;
  if (KeepsBytes(shape, order)) {
    const std::vector<int64_t> sizes = *ReshapeSizes(shape, order);
    AttrMap attrs;
    if (!shape.known()) attrs = WriteAttrs(ReshapeAttrs{.zero_copies = true});
    const ValueId to = patch.AddConstant(Tensor::Int64s(sizes));
    return patch.Add("Reshape", std::move(attrs), {x, to}, std::move(from));
  }
  const ValueId perm =
      patch.AddConstant(Tensor::Int64s(std::vector<int64_t>(order.begin(), order.end())));
  return patch.Add("Transpose", {}, {x, perm}, std::move(from));
}

}  // namespace oncilla
