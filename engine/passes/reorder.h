// Which nodes can compute on reordered axes: the same result, with its axes in another order, from
// inputs in that order. An elementwise op needs nothing for it, others a changed axis or list.
#pragma once

#include <optional>
#include <vector>

#include "engine/passes/axis_order.h"

namespace oncilla {

// Of a node whose order is free. Its outputs have rank `rank` and the order of its `carried`
// inputs, which have that rank too; inputs in `broadcast` have a lower one and are stretched to it.
// A reduction's outputs may lack the axes in `dropped`.
struct FreeOrder {
  int rank = 0;
  std::vector<int> carried;
  std::vector<int> broadcast;
  std::vector<int> dropped;  // sorted
};
// Nothing for nodes whose order is part of what they compute (Conv, Reshape, MatMul), or of which
// not enough is known.
std::optional<FreeOrder> FreeOrderOf(const Graph& graph, const Node& node);

// Adds the node as it computes on values in this order. `inputs` are its inputs, those that are
// carried or broadcast in the order already; the outputs are in the order too, as far as their axes
// are not dropped.
Result<std::vector<ValueId>> AddReordered(const Graph& graph, NodeId id, const AxisOrder& order,
                                          std::vector<ValueId> inputs, Patch& patch);

}  // namespace oncilla
