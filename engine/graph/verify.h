// Verify: checks all invariants of a graph. Tests verify a graph after each pass; sessions do so
// with the `verify` option.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// Internal, naming the node, when: an id is out of range; a node reads a value that is computed
// later; a producer link is wrong; inference no longer agrees with a stored fact; a fetched name
// has no value; a constant has no data; two values have the same source name.
Status Verify(const Graph& graph);

}  // namespace oncilla
