// Flattening: converts a graph with functions, for given feeds and fetches, to one flat list of the
// nodes that the fetches need.
//
// Calls are inlined, identities and reads of variables are resolved, variables become constants.
// Only what the fetches need is visited, so unsupported ops in training functions, savers and
// initialisers do not matter. The functions of loops and branches become flat graphs of their own,
// which their node contains; handles of variables and tables are traced into them.
//
// A variable that some visited node writes, and every table, is state: nodes that read or write it
// are kept, and these effects keep the order that TensorFlow's data and control edges define.
// Control edges that only order reads of constants are dropped. A name inside a call is spelled
// "call/inner/node".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/import/tf/graph/graph.h"

namespace oncilla {

struct TfRef {
  int node = -1;  // -1: a handle, which has no value
  int output = 0;
  friend bool operator==(const TfRef& a, const TfRef& b) {
    return a.node == b.node && a.output == b.output;
  }
};

struct TfFlatGraph;

struct TfFlatNode {
  // kInput: a feed, or an argument of a function; kVariable: a constant; kState: a variable or a
  // table whose value changes.
  enum class Kind { kOp, kInput, kVariable, kState };
  Kind kind = Kind::kOp;
  std::string name;
  const TfNode* source = nullptr;  // op and attributes; for kInput the node that was fed or called
  Bytes device = {};  // kOp: the device stored on the node, else on the call that contains it
  std::vector<TfRef> inputs;
  Tensor value;   // kVariable
  int feed = -1;  // kInput: which feed or argument
  // kOp, of loops and branches: {cond, body} or one per branch. Their inputs are the arguments.
  std::vector<TfFlatGraph> bodies;
  // kOp with effects, or random: the pivots (Switch) of old-style branches that it waits for.
  std::vector<TfRef> controls;
  // The op that replaces the source's op if old-style control flow was raised.
  std::string_view raised_op;

  std::string_view op() const { return raised_op.empty() ? source->op : raised_op; }
};

struct TfFlatGraph {
  std::vector<TfFlatNode> nodes;  // each after all it reads, unless there is a cycle
  std::vector<TfRef> outputs;     // one per fetch, or per result of the function
  std::vector<int> inputs;        // the node of each feed; -1 for feeds that no fetch needs
  std::vector<int> effects;       // nodes with effects, in their order
  std::string cycle;              // a node on a cycle of data edges; empty when there is none
};

struct TfFlattenRequest {
  std::vector<std::string> feeds;    // tensor names: "node", "node:0", "call/inner/node:1"
  std::vector<std::string> fetches;  // the same
  std::vector<std::string> targets;  // nodes to run for their effects
  // The value of a variable from its handle (VarHandleOp) or its own node (VariableV2).
  std::function<Result<Tensor>(const TfNode&)> variable;
  // Whether the variable of this name is known to change, beyond what this graph shows.
  std::function<bool(std::string_view)> is_state;
  // When set, effects on other variables and tables are omitted: for a part of an initialiser.
  std::function<bool(std::string_view)> only_effects_on;
};

// NotFound, with near names, for a feed or fetch that is not in the graph; Unimplemented for a
// function that calls itself; DataLoss for dangling edges. The result has views into `graph`, which
// must outlive it. Old-style control flow (Switch, Merge, Enter..) is not changed.
Result<TfFlatGraph> FlattenTfGraph(TfGraph& graph, const TfFlattenRequest& request);

// Sorts the nodes so that each comes after what it reads and effects keep their order; sets
// `cycle`. Bodies are sorted already.
void SortTfFlatGraph(TfFlatGraph& graph);

}  // namespace oncilla
