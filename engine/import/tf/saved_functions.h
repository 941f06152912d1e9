// The functions of the object that a SavedModel was saved from, which Python calls as attributes of
// the restored object ("model.encode(x)") and which need not have a signature.
//
// The object graph (saved_object_graph.proto) says which functions an object has and what each of
// them was traced to: functions of the graph's library, whose last arguments are captured variables
// and tables. Calling one takes a node in the main graph, as a signature has one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/import/tf/graph/graph.h"
#include "engine/import/tf/saved_choice.h"

namespace oncilla {

// What Python calls it, without the object's own name ("encode", "encoder.encode"), and the
// functions of the library that it was traced to, one for each kind of arguments.
using SavedFunctions = std::map<std::string, std::vector<std::string>>;
// Those whose names do not begin with an underscore, but for "__call__". Throws WireError.
SavedFunctions ReadSavedFunctions(Bytes object_graph);

// The tensors of the main graph that a function captures, in order; Unimplemented when one of them
// is not to be found.
using CapturesOf = std::function<Result<std::vector<std::string>>(const std::string& function)>;

// Adds a call of a library function to the main graph, with a placeholder for each argument, unless
// it is there already, and says what it takes and gives: arguments by the names of the function,
// results by the keys of the dict that it returns, else "output_0", "output_1", ..
Result<SavedTrace> CallSavedFunction(TfGraph& graph, Bytes object_graph,
                                     const std::string& function, const CapturesOf& captures);

}  // namespace oncilla
