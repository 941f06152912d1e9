// Graph: values and the nodes that compute them.
//
// A graph is correct by construction: AddNode runs inference, so that every value has a Fact from
// the start, and each node comes after the nodes whose results it reads. A graph is changed only by
// patches (patch.h). A constant is a value with data and no producer. Every node records the source
// nodes it was made from, and a value at most one source tensor name; errors, profiles and
// placement use those names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/op_set.h"

namespace oncilla {

enum class ValueId : uint32_t {};
enum class NodeId : uint32_t {};
inline constexpr ValueId kNoValue{~0u};  // an optional input that is not given
inline constexpr NodeId kNoNode{~0u};
constexpr uint32_t Index(ValueId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t Index(NodeId id) { return static_cast<uint32_t>(id); }

// The device a node is placed on: an index into a session's list, where 0 is the CPU.
inline constexpr int kUnplaced = -1;

struct Value {
  Fact fact;
  NodeId producer = kNoNode;  // none for graph inputs and constants
  int output = 0;             // which output of the producer
  std::string name;           // source tensor name; may be empty
  bool is_input = false;

  bool is_constant() const { return producer == kNoNode && !is_input; }
};

struct Node {
  const OpDef* op = nullptr;
  std::string name;
  AttrMap attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> sources;  // source nodes; the node's own name when that is the only one
  int device = kUnplaced;
};

struct NamedValue {
  std::string name;
  ValueId value = kNoValue;
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<const OpSet> ops) : ops_(std::move(ops)) {}

  ValueId AddInput(std::string name, Fact fact);
  ValueId AddConstant(Tensor value, std::string name = "");
  // Refuses an unknown op, a wrong number of inputs and what inference refuses; the failure names
  // the node. Sources are {name} unless given.
  Result<std::vector<ValueId>> AddNode(std::string name, std::string_view op, AttrMap attrs,
                                       std::vector<ValueId> inputs,
                                       std::vector<std::string> sources = {});
  // AddNode for ops with one output.
  Result<ValueId> Add(std::string name, std::string_view op, AttrMap attrs,
                      std::vector<ValueId> inputs);
  void AddOutput(std::string name, ValueId value) { outputs_.push_back({std::move(name), value}); }
  void SetValueName(ValueId id, std::string name) { values_[Index(id)].name = std::move(name); }
  void SetDevice(NodeId id, int device) { nodes_[Index(id)].device = device; }
  // Drops the bytes of a constant, which stays a constant with a known descriptor.
  void LetGo(ValueId constant) { values_[Index(constant)].fact.value = Tensor(); }

  const OpSet& ops() const { return *ops_; }
  const std::shared_ptr<const OpSet>& shared_ops() const { return ops_; }
  const Value& value(ValueId id) const { return values_[Index(id)]; }
  const Fact& fact(ValueId id) const;  // Absent for kNoValue
  const Node& node(NodeId id) const { return nodes_[Index(id)]; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Value> values() const { return values_; }
  std::span<const NamedValue> inputs() const { return inputs_; }
  std::span<const NamedValue> outputs() const { return outputs_; }
  Facts FactsOf(std::span<const ValueId> ids) const;

 private:
  friend class Patch;
  std::shared_ptr<const OpSet> ops_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<NamedValue> inputs_;
  std::vector<NamedValue> outputs_;
};

// What AddNode checks, on its own: the op, arity and inference. The failure names the node.
Result<Facts> InferNode(const OpSet& ops, std::string_view name, std::string_view op,
                        const AttrMap& attrs, std::span<const Fact> inputs);

// For each value, the nodes that read it, in order; a node that reads it twice is listed twice.
std::vector<std::vector<NodeId>> Consumers(const Graph& graph);

// A variable, or a part of a table, that a module reads or writes while it runs.
struct ModuleVariable {
  std::string name;      // as ReadVariable and AssignVariable spell it
  std::string resource;  // the source's name of the variable or table
  Tensor initial;        // invalid when it has no value until something assigns one
};

// A main graph, the functions that its control flow calls, and the variables that persist between
// runs.
struct Module {
  Module(Graph graph) : main(std::move(graph)) {}  // NOLINT: a graph alone is a module
  Graph main;
  std::vector<std::pair<std::string, Graph>> functions;
  std::vector<ModuleVariable> variables;
};

}  // namespace oncilla
