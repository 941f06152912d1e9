// Raising: converts TensorFlow's old control flow (Switch, Merge, Enter, Exit, NextIteration,
// LoopCond) to loops and branches with functions.
#pragma once

#include "engine/import/tf/graph/functions.h"

namespace oncilla {

// Rewrites a graph, and the bodies in it, until none of these ops is left. Unimplemented, naming
// the frame and nodes, for forms that TensorFlow itself does not produce; does not change other
// graphs.
Status RaiseTfControlFlow(TfFlatGraph& graph);

}  // namespace oncilla
