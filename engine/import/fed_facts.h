// What a run feeds, where the file leaves open what an op needs: imports are narrowed to it.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// Adds to what the file says of an input what is known of the tensor that is fed for it; null where
// nothing is. A tensor that does not fit is left to the run, which refuses it.
void NarrowToFed(Fact& fact, const Fact* fed);

// The input of the graph, or a constant where the numbers that are fed are known.
ValueId AddFedInput(Graph& graph, const std::string& name, Fact fact, const Fact* fed);

}  // namespace oncilla
