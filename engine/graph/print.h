// Print: a graph as stable text, for people and for golden tests.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace oncilla {

// One line each for inputs, constants that are used, nodes with their outputs, and outputs.
//   input  %0 image f32[1,2]
//   const  %1 i64[2] = 1,2
//   %2 f32[2,1] = Reshape(%0, %1) 'flat'
//   output probs %2
std::string Print(const Graph& graph);

}  // namespace oncilla
