// Divides the nodes of a graph into groups for the engine.
#pragma once

#include <cstddef>
#include <vector>

namespace oncilla::ort {

// A graph reduced to what the division needs: for each node, the earlier nodes that it reads.
using Predecessors = std::vector<std::vector<size_t>>;

// Divides the nodes that are `taken` into groups, each of which becomes one node: no path leads out
// of a group and back into it, and no two groups depend on each other. Nodes must come after what
// they read; each group lists its nodes in order.
//
// Each node has a level that grows along every edge between taken and other nodes: the taken nodes
// of one level are a group. A path that leaves a group arrives at a higher level and never returns.
std::vector<std::vector<size_t>> Partition(const Predecessors& predecessors,
                                           const std::vector<bool>& taken);

}  // namespace oncilla::ort
