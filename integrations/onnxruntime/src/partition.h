// Which nodes of a graph go together to the engine.
#pragma once

#include <cstddef>
#include <vector>

namespace oncilla::ort {

// A graph as far as dividing it goes: for each node, the nodes before it that it reads.
using Predecessors = std::vector<std::vector<size_t>>;

// Divides the nodes that are `taken` into groups, each to become one node: no path leads from a
// group out of it and back, and no two groups wait for each other. Nodes must come after what they
// read; each group lists its nodes in order.
//
// Each node has a level that grows along every edge between taken and other nodes: the taken nodes
// of one level are a group. A path that leaves a group arrives at a higher level and never returns.
std::vector<std::vector<size_t>> Partition(const Predecessors& predecessors,
                                           const std::vector<bool>& taken);

}  // namespace oncilla::ort
