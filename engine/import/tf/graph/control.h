// Lowering of loops and branches, whose functions become functions of the Module, and of variables
// and tables that change.
#pragma once

#include <span>
#include <string>

#include "engine/import/tf/graph/builder.h"

namespace oncilla {

// The message of a failure whose reasons are already in the list of unsupported ops.
inline constexpr std::string_view kTfBodyFailed = "its function holds unsupported ops";

// Lowers a node with bodies. `inputs` that are handles are kNoValue; outputs likewise.
Result<Values> LowerTfControl(TfImportState& state, Graph& graph, const TfFlatNode& node,
                              std::span<const ValueId> inputs);

// Records in the Module that a variable or table is used, with its initial value if it has one.
Status UseTfState(TfImportState& state, Graph& graph, const TfFlatNode& node);
// The initial contents of a table that changes, its keys in ascending order. A new table is empty.
Result<TfTableContents> FirstTfTable(TfImportState& state, const TfFlatNode& node);
// Adds a read of the variable.
Result<ValueId> TfReadVariable(Graph& graph, const TfGraph& source, const TfFlatNode& variable,
                               std::string name);

// The names of the variables in which a table's parts are stored.
std::string TfTableKeys(std::string_view table);
std::string TfTableValues(std::string_view table);

}  // namespace oncilla
