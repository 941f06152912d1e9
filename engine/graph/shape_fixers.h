// Finds the values that determine shapes: those that plan inputs are computed from. Such values are
// part of a plan's key, are computed while planning, and are not touched by fusions, which would
// hide them.
#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

// Per value, true when its contents fix a shape or geometry somewhere.
std::vector<bool> FindShapeFixers(const Graph& graph);

}  // namespace oncilla
