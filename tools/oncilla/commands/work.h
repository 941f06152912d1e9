// The work of the nodes of a graph at given input shapes: operations and bytes, for inspect and for
// the rates in bench.
//
// Counted: two operations per multiply-add of Conv, ConvTranspose and MatMul, one per output
// element of elementwise ops, one per input element of ops that reduce or normalise, none for
// movement. Bytes are what a node must at least read and write once. Sizes that depend on data are
// unknown, and their nodes are not counted.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"

namespace oncilla::tool {

struct NodeWork {
  bool known = false;
  double operations = 0;
  double bytes = 0;
  double constant_bytes = 0;      // of these
  DType dtype = DType::kInvalid;  // of the first operand
  std::string shapes;             // "1x56x56x64, 3x3x64x64, 64 -> 1x56x56x64"
};

struct GraphWork {
  std::vector<NodeWork> nodes;  // in the order of the graph
  double operations = 0;
  int unknown_nodes = 0;
};

// The work of a node whose sizes are all known.
NodeWork WorkOf(const NodeView& node);

// Each node in order, with what is inferred of its operands; whether all sizes are known.
using NodeVisitor = std::function<void(const NodeView& node, bool known)>;
void VisitNodes(const Graph& graph, std::span<const Fact> inputs, Device& cpu,
                const NodeVisitor& visit);

// `inputs` are the facts of the graph's inputs, in order; `cpu` computes the small integers that
// shapes depend on.
GraphWork WorkOf(const Graph& graph, std::span<const Fact> inputs, Device& cpu);

}  // namespace oncilla::tool
