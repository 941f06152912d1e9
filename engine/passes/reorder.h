// Which nodes can compute on reordered axes: the same result, with its axes in another order, from
// inputs in that order. An elementwise op can do so as it is; others need a changed axis attribute
// or list.
#pragma once

#include <optional>
#include <vector>

#include "engine/passes/axis_order.h"

namespace oncilla {

// The operands of a node whose axis order is free. Its outputs have rank `rank` and the axis order
// of its `carried` inputs, which have that rank too; inputs in `broadcast` have a lower rank and
// are broadcast to it. A reduction's outputs may lack the axes in `dropped`.
struct FreeOrder {
  int rank = 0;
  std::vector<int> carried;
  std::vector<int> broadcast;
  std::vector<int> dropped;  // sorted
};
// Nothing for nodes whose axis order is part of what they compute (Conv, Reshape, MatMul), or of
// which not enough is known.
std::optional<FreeOrder> FreeOrderOf(const Graph& graph, const Node& node);

// Adds a copy of the node that computes on values in this axis order. `inputs` are its inputs;
// those that are carried or broadcast are in this order already. So are its outputs, except for
// axes that are dropped.
Result<std::vector<ValueId>> AddReordered(const Graph& graph, NodeId id, const AxisOrder& order,
                                          std::vector<ValueId> inputs, Patch& patch);

}  // namespace oncilla
