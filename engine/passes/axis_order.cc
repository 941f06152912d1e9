// Permutations of axes.
#include "engine/passes/axis_order.h"

#include <algorithm>
#include <numeric>

#include "engine/ops/array/movement.h"

namespace oncilla {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// The permutation that a Reshape amounts to if it only moves axes of size 1.
std::optional<AxisOrder> OrderOfReshape(const PartialShape& from, const PartialShape& to) {
  if (!from.ranked() || !to.ranked() || from.rank() != to.rank()) return {};
  const int rank = from.rank();
  // Sizes other than 1 are matched in order, and then the axes of size 1.
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

// The axes of size 1, and the sizes of the other axes.
struct Ones {
  std::vector<int64_t> axes;
  std::vector<Dim> others;
};
Ones FindOnes(const PartialShape& shape) {
  Ones ones;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i].size == 1) {
      ones.axes.push_back(i);
    } else {
      ones.others.push_back(shape[i]);
    }
  }
  return ones;
}

// Moves, adds or removes axes of size 1 of x to give the shape `to`; all other sizes are equal.
Result<ValueId> MoveOnes(Patch& patch, ValueId x, const PartialShape& to,
                         std::vector<NodeId> from) {
  const PartialShape is = patch.fact(x).shape;
  const Ones ones = FindOnes(is), wanted = FindOnes(to);
  // A single Reshape, if each size is known or can be copied by a 0 in the same place.
  std::vector<int64_t> sizes;
  bool known = true, copies = false, empty = false;
  for (int i = 0; i < to.rank(); ++i) {
    const bool copied = !to[i].known() && i < is.rank() && is[i].Same(to[i]);
    known &= to[i].known() || copied;
    copies |= copied;
    empty |= to[i].size == 0;
    sizes.push_back(to[i].known() ? to[i].size : 0);
  }
  if (known && !(copies && empty)) {
    AttrMap attrs;
    if (copies) attrs = WriteAttrs(ReshapeAttrs{.zero_copies = true});
    const ValueId shape = patch.AddConstant(Tensor::Int64s(sizes));
    return patch.Add("Reshape", std::move(attrs), {x, shape}, std::move(from));
  }
  // Otherwise remove all axes of size 1 and insert the wanted ones.
  if (!ones.axes.empty()) {
    const ValueId axes = patch.AddConstant(Tensor::Int64s(ones.axes));
    ONCILLA_ASSIGN(x, patch.Add("Squeeze", {}, {x, axes}, from));
  }
  if (!wanted.axes.empty()) {
    const ValueId axes = patch.AddConstant(Tensor::Int64s(wanted.axes));
    ONCILLA_ASSIGN(x, patch.Add("Unsqueeze", {}, {x, axes}, from));
  }
  return x;
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
  return true;
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

Result<ValueId> AddView(Patch& patch, ValueId x, const PartialShape& to, std::vector<NodeId> from) {
  const std::vector<Dim> is = FindOnes(patch.fact(x).shape).others, wanted = FindOnes(to).others;
  if (is.size() != wanted.size()) return kNoValue;
  int guesses = 0;  // if all other sizes are equal, so is the one unknown pair
  for (size_t i = 0; i < is.size(); ++i) {
    if (is[i].Same(wanted[i])) continue;
    if (is[i].known() || wanted[i].known() || ++guesses > 1) return kNoValue;
  }
  return MoveOnes(patch, x, to, std::move(from));
}

Result<ValueId> AddTranspose(Patch& patch, ValueId x, const AxisOrder& order,
                             std::vector<NodeId> from) {
  if (IsSameOrder(order)) return x;
  const PartialShape shape = patch.fact(x).shape;
  if (KeepsBytes(shape, order)) return MoveOnes(patch, x, Reorder(shape, order), std::move(from));
  const ValueId perm =
      patch.AddConstant(Tensor::Int64s(std::vector<int64_t>(order.begin(), order.end())));
  return patch.Add("Transpose", {}, {x, perm}, std::move(from));
}

}  // namespace oncilla
