// Small queries on a graph, shared by passes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace oncilla {

class Uses {
 public:
  explicit Uses(const Graph& graph);  // which outlives it

  // The value has one reader and is no graph output, so it may be changed with that reader.
  bool Single(ValueId id) const { return counts_[Index(id)] == 1; }
  // How many nodes read it and how often the graph fetches it.
  int Count(ValueId id) const { return counts_[Index(id)]; }
  // The reader of a value that has a single one; else null.
  const Node* OnlyReader(ValueId id) const {
    return Single(id) ? &graph_.node(readers_[Index(id)]) : nullptr;
  }

 private:
  const Graph& graph_;
  std::vector<int> counts_;
  std::vector<NodeId> readers_;  // the last one of each value
};

// Whether two shapes are certainly equal.
bool SameShape(const PartialShape& a, const PartialShape& b);

// The node that computes the value if it is an `op`, else null; null for kNoValue.
const Node* ProducerIf(const Graph& graph, ValueId id, std::string_view op);
NodeId IdOf(const Graph& graph, ValueId output);

// Attribute `name` of a node as a whole number, or `otherwise` when it is not there.
int64_t IntAttr(const Node& node, std::string_view name, int64_t otherwise);
bool BoolAttr(const Node& node, std::string_view name, bool otherwise);
std::string StringAttr(const Node& node, std::string_view name, std::string_view otherwise);

// Whether inference accepts an `op` that reads these values of the graph or the patch, and every
// device could compute it, since placement comes later.
bool AcceptedEverywhere(const Graph& graph, const PassContext& context, const Patch& patch,
                        std::string_view op, const AttrMap& attrs, std::span<const ValueId> inputs);

// The index of the constant input of a binary node; -1 unless exactly one input is constant.
int ConstantInput(const Graph& graph, const Node& node);

// True when a constant of this shape, broadcast against `value`, varies along the last axis only:
// all its sizes but the last are one, and the last is one or that of the value.
bool IsPerChannel(const PartialShape& constant, const PartialShape& value);

}  // namespace oncilla
