// A graph of ONNX Runtime as plain structs, and a part of it as a serialized ModelProto.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "integrations/onnxruntime/src/ort.h"

namespace oncilla::ort {

struct GraphValue {
  std::string name;
  bool tensor = false;  // false: a sequence, a map or an optional value; `type` is empty then
  TensorType type;
  const OrtValue* constant = nullptr;  // the initializer, where it can never be fed
};

struct GraphNode {
  const OrtNode* node = nullptr;
  std::string name, op, domain;
  // Names; "" for what is left out. `captures` are read by the graphs that the node holds.
  std::vector<std::string> inputs, outputs, captures;
  std::vector<std::pair<std::string, const OrtGraph*>> graphs;  // that it holds, by attribute
  std::vector<std::string> held;                                // the kinds of all nodes in them

  std::string Label() const;  // its name, else its first output's
  std::string Kind() const;   // its op, behind the domain where that is not ONNX's own
  size_t size() const { return 1 + held.size(); }
};

// The names and pointers are valid as long as ONNX Runtime's graph.
struct Graph {
  explicit Graph(const OrtGraph* graph);
  // A node by itself, which holds the graph `within`.
  Graph(const OrtNode* node, const OrtGraph* within);

  std::string name;
  std::vector<GraphNode> nodes;  // each after what it reads
  std::vector<std::string> inputs, outputs;
  std::unordered_map<std::string, GraphValue> values;
  std::vector<std::pair<std::string, int64_t>> opsets;

  const GraphValue& value(const std::string& name) const { return values.at(name); }
  // Why a node must stay with ONNX Runtime, whatever the engine supports; empty if it need not.
  std::string KeptBy(const GraphNode& node) const;

 private:
  void Add(const OrtNode* node);
  void ReadNames(const OrtGraph* graph);
};

// The values that a part of a graph reads from and provides to the rest, without constants, each
// once.
struct Boundary {
  std::vector<std::string> inputs, outputs;
};
// `nodes` are indices in the graph's order.
Boundary BoundaryOf(const Graph& graph, const std::vector<size_t>& nodes);

// The nodes with their constants as a ModelProto, whose inputs and outputs are those of `boundary`
// and whose nodes are in the given order. Throws if it would exceed 2 GB, protobuf's limit.
std::string ModelOf(const Graph& graph, const std::vector<size_t>& nodes, const Boundary& boundary);

}  // namespace oncilla::ort
