// Converts a subgraph to a graph of canonical ops: every op is lowered by its row, in the file's
// order.
//
// One builder builds one graph: the main one, or the function of a loop or branch. All of them
// share a TfliteImportState.
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
  // If given, other variables are not assigned.
  const std::unordered_set<std::string>* only = nullptr;
  std::map<std::string, TfliteTable> tables = {};  // by the names of their handles
  int depth = 0;                                   // nesting depth of subgraphs
  // Limit on the ops that may still be lowered: bodies of loops are lowered several times, those of
  // nested loops even more often.
  int64_t budget = int64_t{1} << 21;
};

class TfliteBuilder {
 public:
  // All must outlive the builder. `prefix` is prepended to the names of nodes.
  TfliteBuilder(TfliteImportState& state, Graph& graph, const TfliteSubgraph& subgraph,
                std::string prefix)
      : state_(state), graph_(graph), subgraph_(subgraph), prefix_(std::move(prefix)) {}

  // Defines a tensor from outside: as a value, or as a handle of the variable or table of this
  // name.
  void Give(int32_t tensor, ValueId value) { values_[tensor] = value; }
  void GiveHandle(int32_t tensor, std::string variable) { handles_[tensor] = std::move(variable); }
  // The tensors that are needed to compute these, themselves included.
  std::unordered_set<int32_t> NeededTensors(std::span<const int32_t> wanted) const;
  // Lowers what the wanted tensors need, and ops that change variables. Unsupported ops are added
  // to the state's list and set failed(); other failures name the node.
  Status Build(std::span<const int32_t> wanted);
  bool failed() const { return any_failed_; }
  // kNoValue for the result of an unsupported op, and for handles.
  Result<ValueId> Value(int32_t tensor);
  // The variable or table of which a tensor is a handle; empty when it is not one.
  std::string HandleOf(int32_t tensor) const;
  // The fact of a tensor that is fed, from the file. Open sizes get names.
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
  // The name for a tensor's value; empty within calls, and if another value of the graph has that
  // name, since a file may use a name twice.
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
