// The axes that a node works along, found by the axis rule in its op's row.
#include "engine/ops/axes.h"

#include <numeric>

#include "engine/ops/known_ints.h"
#include "engine/ops/math/reduce.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

using Ints = std::optional<std::vector<int64_t>>;

Ints Normalised(Ints axes, int rank) {
  if (!axes) return {};
  for (int64_t& axis : *axes) {
    const auto at = NormalizeAxis(axis, rank);
    if (!at.ok()) return {};
    axis = *at;
  }
  return axes;
}

std::vector<int64_t> Counted(int64_t first, int64_t end) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(end - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Ints ReducedBy(const NodeView& node, size_t list, int rank) {
  const auto attrs = ReadAttrs<ReduceAttrs>(*node.attrs);
  if (!attrs.ok()) return {};
  if (node.has_input(list) && !KnownList(node, list)) return {};
  const auto axes = ReducedAxes(*attrs, node.has_input(list) ? &node.inputs[list] : nullptr, rank);
  if (!axes.ok()) return {};
  return std::vector<int64_t>(axes->begin(), axes->end());
}

}  // namespace

Ints KnownList(const NodeView& node, size_t i) {
  if (!node.has_input(i)) return {};
  auto ints = NeedInts(node.inputs[i], "axes");
  if (!ints.ok()) return {};
  return *std::move(ints);
}

Ints NamedAxes(const NodeView& node) {
  if (!node.has_input(0) || !node.inputs[0].shape.ranked()) return {};
  const int rank = node.inputs[0].shape.rank();
  const Axes& axes = node.op->traits.axes;
  const auto list = static_cast<size_t>(std::max<int>(axes.at, 0));
  const auto attribute = [&] { return AttrOr<int64_t>(*node.attrs, "axis", axes.at); };
  // Attributes name axes directly, inputs name them by value. An op whose list has one entry for
  // each axis works along none of them.
  switch (axes.rule) {
    case AxisRule::kAxis:
      // A parameter that is not a vector (scales of blocks of quantised numbers) refers to other
      // axes of x too.
      for (size_t i = 1; !axes.all_inputs && i < node.inputs.size(); ++i) {
        const PartialShape& shape = node.inputs[i].shape;
        if (node.has_input(i) && (!shape.ranked() || shape.rank() > 1)) return {};
      }
      return Normalised(std::vector<int64_t>{attribute()}, rank);
    case AxisRule::kArg:
    case AxisRule::kGathers:
      return Normalised(std::vector<int64_t>{attribute()}, rank);
    case AxisRule::kAxisToEnd: {
      const Ints first = Normalised(std::vector<int64_t>{attribute()}, rank);
      if (!first) return {};
      return Counted((*first)[0], rank);
    }
    case AxisRule::kLastTwo:
      return Counted(rank - 2, rank);
    case AxisRule::kAxisInput:
    case AxisRule::kAxesInput:
      return Normalised(KnownList(node, list), rank);
    case AxisRule::kReduce:
      return ReducedBy(node, list, rank);
    case AxisRule::kSlice: {
      if (node.has_input(list)) return Normalised(KnownList(node, list), rank);
      const PartialShape& starts = node.inputs[1].shape;
      if (!starts.known() || starts.rank() != 1 || starts[0].size > rank) return {};
      return Counted(0, starts[0].size);
    }
    case AxisRule::kPerAxis:
    case AxisRule::kStretches:
    case AxisRule::kPads: {
      const size_t per_axis = axes.rule == AxisRule::kPads ? 2 : 1;
      const Ints numbers = KnownList(node, list);
      if (!numbers || numbers->size() != per_axis * static_cast<size_t>(rank)) return {};
      return std::vector<int64_t>();
    }
    case AxisRule::kNone:
    case AxisRule::kElementwise:
    case AxisRule::kStrided:
    case AxisRule::kRegroups:
    case AxisRule::kPermutes:
    case AxisRule::kInserts:
    case AxisRule::kSamples:
    case AxisRule::kProduct:
      break;
  }
  return {};
}

}  // namespace oncilla
