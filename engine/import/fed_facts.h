// Narrows imported inputs to the facts of a run's feeds, where the file leaves open what an op
// needs.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// Adds to the fact of an input in the file what is known of the tensor that is fed for it; `fed`
// may be null. A tensor that contradicts the file is ignored here: the run refuses it.
void NarrowToFed(Fact& fact, const Fact* fed);

// Adds an input of the graph, or a constant if the numbers that are fed are known.
ValueId AddFedInput(Graph& graph, const std::string& name, Fact fact, const Fact* fed);

}  // namespace oncilla
