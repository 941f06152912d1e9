// RunGraph: computes a graph node by node with the CPU's plain code. For tests of code that makes
// or rewrites graphs: no passes, no placement, no plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"

namespace oncilla::testing {

// The value of every output, in order. `feeds` by input name. `values`, when given, gets every
// value of the graph.
Result<std::vector<Tensor>> RunGraph(const Graph& graph, const std::map<std::string, Tensor>& feeds,
                                     std::vector<Tensor>* values = nullptr);

}  // namespace oncilla::testing
