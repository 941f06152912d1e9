// From a subgraph to a graph of canonical ops: every op lowered by its row, in the file's order.
//
// One builder makes one graph: the main one, or the function of a loop or branch. What all of them
// share is a TfliteImportState.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/import/import_bounds.h"
#include "engine/import/tflite/lowering.h"
#include "engine/import/unsupported_list.h"

namespace oncilla {

// The types of a hash table.
struct TfliteTable {
  DType keys, values;
};

struct TfliteImportState {
  const TfliteModel& model;
  std::shared_ptr<const void> owner;  // keeps the file's bytes
  Module& module;
  UnsupportedList unsupported = {};
  ImportBounds bounds = {};
  // For each subgraph, whether it changes a variable.
  std::vector<char> effects = {};
  // Where given, no other variables are assigned.
  const std::unordered_set<std::string>* only = nullptr;
  std::map<std::string, TfliteTable> tables = {};  // by what their handles say
  int depth = 0;                                   // of subgraphs that are inside of each other
  // Ops that may still be lowered: loops lower their bodies several times, loops in loops the more.
  int64_t budget = int64_t{1} << 21;
};

class TfliteBuilder {
 public:
  // All must outlive the builder. `prefix` begins the names of nodes.
  TfliteBuilder(TfliteImportState& state, Graph& graph, const TfliteSubgraph& subgraph,
                std::string prefix)
      : state_(state), graph_(graph), subgraph_(subgraph), prefix_(std::move(prefix)) {}

  // What a tensor is from outside: a value, or a handle of the variable or table of this name.
  void Give(int32_t tensor, ValueId value) { values_[tensor] = value; }
  void GiveHandle(int32_t tensor, std::string variable) { handles_[tensor] = std::move(variable); }
  // The tensors that computing these reads, with themselves.
  std::unordered_set<int32_t> NeededTensors(std::span<const int32_t> wanted) const;
  // Lowers what the wanted tensors need, and what changes variables. Unsupported ops are added to
  // the state's list and set failed(); other failures name the node.
  Status Build(std::span<const int32_t> wanted);
  bool failed() const { return any_failed_; }
  // kNoValue for what an unsupported op was to compute, and for handles.
  Result<ValueId> Value(int32_t tensor);
  // The variable or table that a tensor is a handle of; empty when it is none.
  std::string HandleOf(int32_t tensor) const;
  // What the file says of a tensor that is fed. Sizes that are open get names.
  static Result<Fact> InputFact(const TfliteTensor& tensor, std::string_view name);

 private:
  std::vector<size_t> NeededOps(std::unordered_set<int32_t>& needed) const;
  Status LowerOp(size_t i);
  Result<Values> Lower(const TfliteOp& op, const std::string& name, Values inputs);
  Result<Values> LowerByRow(const TfliteOp& op, const TfliteOpRow& row, const std::string& name,
                            Values inputs);
  Status Define(const TfliteOp& op, const Values& outputs);
  Status Fail(const TfliteOp& op);
  std::string NameOf(size_t i) const;
  // The name of a tensor for its value; empty where another value of the graph has it, as a file's
  // tensors may, and within calls.
  std::string ValueName(const TfliteTensor& tensor);
  // In tables.cc: hash tables.
  Result<Values> LowerTableHandle(const TfliteOp& op);
  Result<Values> LowerTable(const TfliteOp& op, const std::string& name, const Values& inputs);
  // In control.cc: calls of other subgraphs, and variables.
  static bool IsControl(const TfliteOp& op);
  bool HasEffect(const TfliteOp& op) const;
  Result<Values> LowerControl(const TfliteOp& op, const std::string& name, const Values& inputs);
  Result<Values> LowerIf(const TfliteOp& op, const std::string& name, const Values& inputs);
  Result<Values> LowerWhile(const TfliteOp& op, const std::string& name, const Values& inputs);
  Result<Values> LowerVariable(const TfliteOp& op, const std::string& name, const Values& inputs);
  Result<Values> Inline(const TfliteOp& op, size_t subgraph, const std::string& name,
                        const Values& inputs, size_t first);
  Result<Graph> Function(const TfliteOp& op, size_t subgraph, const std::string& name,
                         std::span<const ValueId> values, const Facts& facts, size_t first,
                         bool all_outputs);
  Result<const TfliteSubgraph*> Called(const TfliteOp& op, int field, size_t& index) const;

  TfliteImportState& state_;
  Graph& graph_;
  const TfliteSubgraph& subgraph_;
  const std::string prefix_;
  std::unordered_map<int32_t, ValueId> values_;
  std::unordered_map<int32_t, std::string> handles_;
  std::unordered_set<std::string> names_;  // given by ValueName
  bool any_failed_ = false;
};

}  // namespace oncilla
