// Converts a flat graph to a graph of canonical ops: every node is lowered by its row, in order.
//
// One builder builds one graph: the main one, or the function of a loop or branch. All of them
// share a TfImportState. Loops and branches are lowered by control.h, which builds their functions
// with builders of their own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/source_nodes.h"
#include "engine/import/tf/lowering.h"
#include "engine/import/unsupported_list.h"

namespace oncilla {

struct TfImportState {
  TfGraph& source;
  Module& module;
  UnsupportedList unsupported;
  // The initial value of a variable that changes; NotFound when there is none.
  std::function<Result<Tensor>(const TfNode&)> variable;
  SourceNodes* source_nodes = nullptr;  // receives the nodes that were lowered; may be null
  // The initial contents of a table that changes; may be empty.
  std::function<Result<std::optional<TfTableContents>>(const TfNode&)> table;
  // Limit on the nodes that may still be lowered: functions of loops are lowered several times,
  // those of nested loops even more often.
  int64_t budget = int64_t{1} << 22;
};

class TfBuilder {
 public:
  // All must outlive the builder.
  TfBuilder(TfImportState& state, Graph& graph, const TfFlatGraph& flat);

  // Gives each input its value (kNoValue for a handle) and lowers all nodes. Unsupported nodes are
  // added to the state's list and set failed(); other failures name the node.
  Status Build(std::span<const ValueId> inputs);
  bool failed() const { return any_failed_; }
  // Whether output i has a last axis for the parts of complex numbers.
  bool IsComplex(size_t i) const {
    const int node = flat_.outputs[i].node;
    return node >= 0 && complex_[static_cast<size_t>(node)] != 0;
  }
  // The value of output i; kNoValue for a handle.
  Result<ValueId> Output(size_t i);

 private:
  Result<ValueId> Get(const TfRef& ref);
  Result<ValueId> GetForNode(const TfFlatNode& node, size_t input, bool takes_handles);
  Status AddNode(size_t i);
  Result<Values> Lower(const TfFlatNode& node, const TfOpRow* row);
  void NameValues(const TfFlatNode& node, const Values& values);

  TfImportState& state_;
  Graph& graph_;
  const TfFlatGraph& flat_;
  std::vector<Values> values_;  // per flat node, its outputs
  std::vector<char> failed_;
  std::vector<char> complex_;
  bool any_failed_ = false;
};

// The type of a variable, as its node states it.
Result<Fact> TfVariableFact(const TfGraph& graph, const TfNode& node);

}  // namespace oncilla
