// The functions of the object that a SavedModel was saved from, which Python calls as attributes of
// the restored object ("model.encode(x)") and which need not have a signature.
//
// The object graph (saved_object_graph.proto) lists the functions of an object and the traces of
// each: functions of the graph's library, whose last arguments are captured variables and tables.
// Calling one requires a node in the main graph, like that of a signature.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/import/tf/graph/graph.h"
#include "engine/import/tf/saved_choice.h"

namespace oncilla {

// Python's name, without the object's own name ("encode", "encoder.encode"), and the functions of
// the library to which it was traced, one for each kind of arguments.
using SavedFunctions = std::map<std::string, std::vector<std::string>>;
// Reads those whose names do not begin with an underscore, and "__call__". Throws WireError.
SavedFunctions ReadSavedFunctions(Bytes object_graph);

// The tensors of the main graph that a function captures, in order; Unimplemented when one of them
// cannot be found.
using CapturesOf = std::function<Result<std::vector<std::string>>(const std::string& function)>;

// Adds a call of a library function to the main graph, with a placeholder for each argument, unless
// it exists already, and returns its signature: arguments by the names in the function, results by
// the keys of the dict that it returns, else "output_0", "output_1", ..
Result<SavedTrace> CallSavedFunction(TfGraph& graph, Bytes object_graph,
                                     const std::string& function, const CapturesOf& captures);

}  // namespace oncilla
