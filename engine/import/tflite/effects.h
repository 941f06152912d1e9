// Ops that call other subgraphs or work on variables and tables, determined from the file alone.
#pragma once

#include "engine/import/tflite/reader.h"

namespace oncilla {

enum class TfliteControl {
  kNone,
  kIf,
  kWhile,
  kCallOnce,
  kComposite,
  kHandle,
  kRead,
  kAssign,
  kTable,  // a handle of a hash table
  kTableFind,
  kTableImport,
  kTableSize,
};
TfliteControl TfliteControlOf(const TfliteOp& op);
// Whether an op changes a variable or fills a table.
inline bool TfliteWrites(const TfliteOp& op) {
  const TfliteControl kind = TfliteControlOf(op);
  return kind == TfliteControl::kAssign || kind == TfliteControl::kTableImport;
}

// The subgraph, below `subgraphs`, that an option of a control op names.
Result<size_t> TfliteCallee(const TfliteOp& op, int field, size_t subgraphs);
// The subgraphs that an op calls each time it runs; invalid ones are left out.
std::vector<size_t> TfliteCallees(const TfliteOp& op, size_t subgraphs);

// For each subgraph, whether it or one that it calls assigns a variable or fills a table.
std::vector<char> TfliteEffects(const TfliteModel& model);
// The subgraphs that a subgraph calls once, before its first run.
Result<std::vector<size_t>> TfliteInitialisers(const TfliteModel& model, size_t subgraph);

}  // namespace oncilla
