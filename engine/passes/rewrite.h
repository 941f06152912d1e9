// Small questions that several passes ask of a graph.
#pragma once

#include <string_view>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  // The value has one reader, is no output of the graph, and so may be changed with that reader.
  bool Single(ValueId id) const { return counts_[Index(id)] == 1; }
  // How many nodes read it and how often the graph fetches it.
  int Count(ValueId id) const { return counts_[Index(id)]; }

 private:
  std::vector<int> counts_;
};

// The node that computes the value when it is an `op`, else null. kNoValue is nobody's.
const Node* ProducerIf(const Graph& graph, ValueId id, std::string_view op);
NodeId IdOf(const Graph& graph, ValueId output);

// Attribute `name` of a node as a whole number, or `otherwise` when it is not there.
int64_t IntAttr(const Node& node, std::string_view name, int64_t otherwise);
bool BoolAttr(const Node& node, std::string_view name, bool otherwise);
std::string StringAttr(const Node& node, std::string_view name, std::string_view otherwise);

// Of a binary node with one constant input: which input is the constant (-1: not exactly one).
int ConstantInput(const Graph& graph, const Node& node);

// True when a constant of this shape, broadcast against `value`, only tells the last axis apart:
// all its sizes but the last are one, and the last is one or the value's last.
bool IsPerChannel(const PartialShape& constant, const PartialShape& value);

}  // namespace oncilla
