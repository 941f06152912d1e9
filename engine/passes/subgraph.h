// Parts of a graph with one way in and one way out, for passes that recognise a function however
// it was written: they compute a subgraph on chosen numbers and compare with the op they know.
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

// The subgraphs that end in `exit`, smallest first: of at most `max_nodes` nodes that all `belong`,
// and whose results nobody else reads.
std::vector<Subgraph> SubgraphsBefore(const Graph& graph, const Uses& uses, ValueId exit,
                                      const std::function<bool(const Node&)>& belongs,
                                      size_t max_nodes);

// What `wanted` are when the values `given`, by index, are these tensors, of any shapes that the
// nodes accept; constants are known. InvalidArgument when more would have to be given.
Result<std::vector<Tensor>> ComputeValues(const Graph& graph, std::map<uint32_t, Tensor> given,
                                          std::span<const ValueId> wanted, Device& cpu);

// The value of `exit` when `entry` is this tensor.
Result<Tensor> ComputeSubgraph(const Graph& graph, const Subgraph& subgraph, const Tensor& entry,
                               Device& cpu);

// True when |a - b| <= tolerance * (1 + |b|) for each element of two float32 tensors.
bool Agree(const Tensor& a, const Tensor& b, double tolerance);

}  // namespace oncilla
