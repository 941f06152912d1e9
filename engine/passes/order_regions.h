// OrderRegions: the axis order in which each node of a graph should compute so that the fewest
// bytes are transposed.
//
// Nodes whose order is free (reorder.h) and that are connected by values, directly or through
// transposes, form a region. All orders in a region are expressed relative to one frame: the frame
// of a node is the order that its result has in the graph as it is. The nodes at the border of a
// region (graph inputs and outputs, convolutions) require one order. Where the order of a reader
// differs from that of the value, the value must be transposed; that costs its bytes, once for all
// readers that want the same order.
//
// The orders are chosen by minimum cuts: for one order at a time, which nodes should switch to it.
// With two orders in a region, the usual case, that is the optimum. A region changes its orders
// only when the sum of costs decreases, so the search ends however often it is repeated.
#pragma once

#include <vector>

#include "engine/passes/reorder.h"

namespace oncilla {

// A node whose order is free.
struct OrderNode {
  NodeId id = kNoNode;
  FreeOrder free;
  AxisOrder frame;
  AxisOrder chosen;  // equal to frame: stays as it is

  // The order in which its result is to be computed, relative to the current one.
  AxisOrder change() const { return Compose(Inverse(frame), chosen); }
};

// Where a value comes from: Transpose(source, order).
struct Origin {
  ValueId source = kNoValue;
  AxisOrder order;
};

struct OrderPlan {
  std::vector<Origin> origins;  // by value; no source: the rank is not known
  std::vector<int> node_of;     // by node of the graph: index into `nodes`, -1 where it has none
  std::vector<OrderNode> nodes;
  bool changes = false;
};

OrderPlan ChooseOrders(const Graph& graph);

}  // namespace oncilla
