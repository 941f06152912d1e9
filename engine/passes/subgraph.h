// Subgraphs with a single entry and a single exit, for passes that recognise a function whichever
// nodes compute it: they evaluate the subgraph on chosen numbers and compare the results with those
// of a known op.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "engine/device/device.h"
#include "engine/passes/rewrite.h"

namespace oncilla {

// All nodes between `entry` and `exit`; constants aside, they read nothing else.
struct Subgraph {
  ValueId entry = kNoValue;
  ValueId exit = kNoValue;
  std::set<uint32_t> nodes;  // indices, in graph order
};

// The subgraphs that end in `exit`, smallest first: of at most `max_nodes` nodes, for all of which
// `belongs` is true, and whose results no other node reads.
std::vector<Subgraph> SubgraphsBefore(const Graph& graph, const Uses& uses, ValueId exit,
                                      const std::function<bool(const Node&)>& belongs,
                                      size_t max_nodes);

// Computes `wanted` from the values `given` (by index), which may have any shapes that the nodes
// accept; constants need not be given. InvalidArgument when further values are needed.
Result<std::vector<Tensor>> ComputeValues(const Graph& graph, std::map<uint32_t, Tensor> given,
                                          std::span<const ValueId> wanted, Device& cpu);

// The value of `exit` when `entry` is this tensor.
Result<Tensor> ComputeSubgraph(const Graph& graph, const Subgraph& subgraph, const Tensor& entry,
                               Device& cpu);

// True when |a - b| <= tolerance * (1 + |b|) for each element of two float32 tensors.
bool Agree(const Tensor& a, const Tensor& b, double tolerance);

}  // namespace oncilla
