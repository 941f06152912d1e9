// Verify: the rules of a graph, checked whole. Passes are verified after each when the session's
// option says so; tests always do.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// Internal, naming the node, when: an id dangles; a node reads what is computed later; a producer
// link is wrong; inference no longer agrees with a stored fact; a fetched name has no value; a
// constant has no data; two values carry one source name.
Status Verify(const Graph& graph);

}  // namespace oncilla
