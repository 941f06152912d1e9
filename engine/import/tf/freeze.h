// Freezing: one signature of a TensorFlow model as a GraphDef that TensorFlow itself loads, with
// the variables as constants.
//
// Nodes are copied as they stand: control edges, loops, branches and calls stay, and so do the
// functions they name. A variable's handle becomes a constant of its value, and whatever carries
// the handle (arguments of functions, identities, loop variables) carries the value instead; a
// function is copied once for each way in which its handles turn into values. Weights are written
// from where they lie, so nothing large is held in memory.
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
  // Tensors of the main graph; types and shapes as far as the signature says them.
  std::vector<TensorInfo> inputs, outputs;
  std::function<Result<Tensor>(const TfNode&)> variable;
};

struct TfFrozenGraph {
  WireRope graph_def;
  std::vector<Tensor> kept;  // whose bytes the rope views
  // What was asked for, and the tensor's name in the frozen graph.
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  int variables = 0;
};

// Unimplemented for what a frozen graph cannot hold, by name: variables that change, tables, more
// than 2 GB (protobuf's limit). Views into `graph`, which must outlive the result.
Result<TfFrozenGraph> FreezeTfGraph(TfGraph& graph, const TfFreezeRequest& request);

Status WriteFrozenGraph(const std::string& path, const TfFrozenGraph& frozen);

}  // namespace oncilla
