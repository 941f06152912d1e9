// Lowering of more than single ops: loops and branches, whose functions become functions of the
// Module, and variables and tables that change.
#pragma once

#include <span>
#include <string>

#include "engine/import/tf/graph/builder.h"

namespace oncilla {

// The message of a failure whose reasons stand in the list of unsupported ops already.
inline constexpr std::string_view kTfBodyFailed = "its function holds unsupported ops";

// A node with bodies. `inputs` are kNoValue where a handle goes in; outputs likewise.
Result<Values> LowerTfControl(TfImportState& state, Graph& graph, const TfFlatNode& node,
                              std::span<const ValueId> inputs);

// Notes in the Module that a variable or table is used, with its first value if it has one.
Status UseTfState(TfImportState& state, Graph& graph, const TfFlatNode& node);
// What a table that changes holds at first, its keys in ascending order. A fresh one holds nothing.
Result<TfTableContents> FirstTfTable(TfImportState& state, const TfFlatNode& node);
// Adds a read of the variable.
Result<ValueId> TfReadVariable(Graph& graph, const TfGraph& source, const TfFlatNode& variable,
                               std::string name);

// The names under which a table's parts are kept.
std::string TfTableKeys(std::string_view table);
std::string TfTableValues(std::string_view table);

}  // namespace oncilla
