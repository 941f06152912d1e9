// Flattening: from a graph with functions, fetched tensors and fed tensors to one flat list of the
// nodes that the fetches need.
//
// Calls are inlined, identities and reads of variables are followed, variables become constants.
// Only what the fetches need is visited, so training functions, savers and initialisers that lie
// beside are never judged. Control edges order side effects; assertions and other checks that they
// lead to are kept, those in the branches of conditionals (TensorFlow guards each of its assertions
// with one) as assertions of "if the branch is taken", and a node that writes a variable is refused. A name inside a call is
// spelled "call/inner/node".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/import/tf_graph.h"

namespace oncilla {

struct TfRef {
  int node = -1;
  int output = 0;
};

struct TfFlatNode {
  enum class Kind { kOp, kInput, kVariable };
  Kind kind = Kind::kOp;
  std::string name;
  const TfNode* source = nullptr;  // op and attributes; for kInput the node that was fed
  std::vector<TfRef> inputs;
  Tensor value;   // kVariable
  int feed = -1;  // kInput: which feed
  // Of an Assert in a branch: the last inputs are the conditions of the branches around it, and it
  // counts only when each has this value.
  std::vector<char> guards;

  std::string_view op() const { return source->op; }
};

struct TfFlatGraph {
  std::vector<TfFlatNode> nodes;  // each after all it reads, unless there is a cycle
  std::vector<TfRef> outputs;     // one per fetch
  std::vector<int> inputs;        // the node of each feed; -1 for feeds that no fetch needs
  std::string cycle;              // a node on a cycle of data edges; empty when there is none
};

struct TfFlattenRequest {
  std::vector<std::string> feeds;    // tensor names: "node", "node:0", "call/inner/node:1"
  std::vector<std::string> fetches;  // the same
  // The value of a variable from its handle (VarHandleOp) or its own node (VariableV2).
  std::function<Result<Tensor>(const TfNode&)> variable;
};

// NotFound, with near names, for a feed or fetch that is not in the graph; Unimplemented for a
// function that calls itself and for a variable that is written, naming it; DataLoss for edges that
// lead nowhere. Views into `graph`, which must outlive the result.
Result<TfFlatGraph> FlattenTfGraph(TfGraph& graph, const TfFlattenRequest& request);

}  // namespace oncilla
