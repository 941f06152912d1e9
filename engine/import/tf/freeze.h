// Freezing: writes one signature of a TensorFlow model as a GraphDef that TensorFlow itself loads,
// with the variables as constants.
//
// Nodes are copied unchanged: control edges, loops, branches and calls stay, and so do the
// functions they name. A variable's handle becomes a constant of its value, and everything that
// passes the handle on (arguments of functions, identities, loop variables) passes the value
// instead; a function is copied once for each combination of handles that become values. Weights
// are written from where they are stored, so nothing large is held in memory.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/import/tf/graph/graph.h"
#include "engine/import/wire/wire_rope.h"

namespace oncilla {

struct TfFreezeRequest {
  // Tensors of the main graph, with types and shapes as far as the signature has them.
  std::vector<TensorInfo> inputs, outputs;
  std::function<Result<Tensor>(const TfNode&)> variable;
};

struct TfFrozenGraph {
  WireRope graph_def;
  std::vector<Tensor> kept;  // tensors of whose bytes the rope has views
  // The requested name, and the tensor's name in the frozen graph.
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  int variables = 0;
};

// Unimplemented, by name, for what a frozen graph cannot contain: variables that change, tables,
// more than 2 GB (protobuf's limit). The result has views into `graph`, which must outlive it.
Result<TfFrozenGraph> FreezeTfGraph(TfGraph& graph, const TfFreezeRequest& request);

Status WriteFrozenGraph(const std::string& path, const TfFrozenGraph& frozen);

}  // namespace oncilla
