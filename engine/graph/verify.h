// Verify: checks all rules of a graph. Graphs are verified after each pass when the session's
// option says so; tests always do that.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// Internal, naming the node, when: an id dangles; a node reads a value that is computed later; a
// producer link is wrong; inference no longer agrees with a stored fact; a fetched name has no
// value; a constant has no data; two values have the same source name.
Status Verify(const Graph& graph);

}  // namespace oncilla
