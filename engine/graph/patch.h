// Patch: the one way to change a graph. A pass reads a graph, describes new nodes and which values
// they replace, and Apply builds the new graph: live nodes only, in a valid order, with names and
// sources carried over.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

class Patch {
 public:
  // `base` must outlive the patch and stay unchanged.
  explicit Patch(const Graph& base) : base_(base) {}

  // New values may be read by further new nodes at once. `from` lists the nodes that the new node
  // replaces: their sources are merged into it, and it runs on the device of the first.
  ValueId AddConstant(Tensor value, std::string name = "");
  Result<std::vector<ValueId>> AddNode(std::string_view op, AttrMap attrs,
                                       std::vector<ValueId> inputs, std::vector<NodeId> from);
  Result<ValueId> Add(std::string_view op, AttrMap attrs, std::vector<ValueId> inputs,
                      std::vector<NodeId> from);
  // All readers of `old_value`, graph outputs included, read `new_value` instead. Their dtypes must
  // be equal and their shapes must not contradict each other.
  Status Replace(ValueId old_value, ValueId new_value);
  // A node of the base graph that was kept for its effects is kept only while another node reads
  // it.
  void DropEffects(NodeId node) { dropped_.push_back(node); }

  // Removes an input of the graph, which nothing may read.
  void DropInput(ValueId input) { dropped_inputs_.push_back(input); }

  const Fact& fact(ValueId id) const;
  bool empty() const { return replaced_.empty(); }
  // Applies the patch, and removes every node that no output needs and that is not kept for its
  // effects.
  Result<Graph> Apply() const;

 private:
  class Rebuild;
  const Graph& base_;
  std::vector<Value> values_;  // new ones; ids follow the base's
  std::vector<Node> nodes_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
  std::vector<NodeId> dropped_;
  std::vector<ValueId> dropped_inputs_;
};

// The graph without the inputs that no node reads and that are not fetched.
Result<Graph> WithoutUnusedInputs(Graph graph);

}  // namespace oncilla
