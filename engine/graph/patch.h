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

  // New values may be read by further new nodes at once. `from` names the nodes whose work the new
  // node takes over: their sources are merged into it, and it runs where the first was placed.
  ValueId AddConstant(Tensor value, std::string name = "");
  Result<std::vector<ValueId>> AddNode(std::string_view op, AttrMap attrs,
                                       std::vector<ValueId> inputs, std::vector<NodeId> from);
  Result<ValueId> Add(std::string_view op, AttrMap attrs, std::vector<ValueId> inputs,
                      std::vector<NodeId> from);
  // Everybody who reads `old_value`, graph outputs included, reads `new_value` instead. Their
  // dtypes must be equal and their shapes must not contradict each other.
  Status Replace(ValueId old_value, ValueId new_value);
  // The node of the base is not kept for its effects any more, only as long as somebody reads it.
  void DropEffects(NodeId node) { dropped_.push_back(node); }

  const Fact& fact(ValueId id) const;
  bool empty() const { return replaced_.empty(); }
  // Moves whatever computes nothing that an output needs out of the graph, and applies the patch.
  Result<Graph> Apply() const;

 private:
  const Graph& base_;
  std::vector<Value> values_;  // new ones; ids follow the base's
  std::vector<Node> nodes_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
  std::vector<NodeId> dropped_;
};

}  // namespace oncilla
