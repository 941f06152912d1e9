// Finds which ops have effects. Calls are edges between subgraphs, and the graph of these is
// traversed once.
#include "engine/import/tflite/effects.h"

namespace oncilla {

namespace {

// The hash table ops of TensorFlow that a file may contain.
TfliteControl ControlOfCustom(std::string_view op) {
  if (op == "FlexHashTableV2") return TfliteControl::kTable;
  if (op == "FlexLookupTableFindV2") return TfliteControl::kTableFind;
  if (op == "FlexLookupTableImportV2") return TfliteControl::kTableImport;
  if (op == "FlexLookupTableSizeV2") return TfliteControl::kTableSize;
  return TfliteControl::kNone;
}

}  // namespace

TfliteControl TfliteControlOf(const TfliteOp& op) {
  if (op.code == kTfliteCustom) return ControlOfCustom(op.custom);
  switch (op.code) {
    case 118:
      return TfliteControl::kIf;
    case 119:
      return TfliteControl::kWhile;
    case 129:
      return TfliteControl::kCallOnce;
    case 136:
      return TfliteControl::kTable;
    case 137:
      return TfliteControl::kTableFind;
    case 138:
      return TfliteControl::kTableImport;
    case 139:
      return TfliteControl::kTableSize;
    case 142:
      return TfliteControl::kHandle;
    case 143:
      return TfliteControl::kRead;
    case 144:
      return TfliteControl::kAssign;
    case 206:
      return TfliteControl::kComposite;
  }
  return TfliteControl::kNone;
}

Result<size_t> TfliteCallee(const TfliteOp& op, int field, size_t subgraphs) {
  const bool composite = TfliteControlOf(op) == TfliteControl::kComposite;
  const FlatTable& options = composite ? op.options2 : op.options;
  // The options tables of IF, WHILE, CALL_ONCE and STABLEHLO_COMPOSITE.
  const int kind = composite        ? op.options2_type - 21
                   : op.code == 118 ? op.options_type - 92
                   : op.code == 119 ? op.options_type - 93
                                    : op.options_type - 103;
  if (kind != 0 || !options.valid()) return DataLoss("does not say which subgraph it calls");
  ONCILLA_ASSIGN(const int32_t number, options.Number<int32_t>(field, 0));
  if (number < 0 || static_cast<size_t>(number) >= subgraphs) {
    return DataLoss("calls subgraph ", number, " of ", subgraphs);
  }
  return static_cast<size_t>(number);
}

std::vector<size_t> TfliteCallees(const TfliteOp& op, size_t subgraphs) {
  std::vector<int> fields;
  switch (TfliteControlOf(op)) {
    case TfliteControl::kIf:
    case TfliteControl::kWhile:
      fields = {0, 1};
      break;
    case TfliteControl::kComposite:
      fields = {1};
      break;
    default:
      break;
  }
  std::vector<size_t> out;
  for (int field : fields) {
    // A damaged op is reported when it is lowered.
    if (const auto callee = TfliteCallee(op, field, subgraphs); callee.ok()) out.push_back(*callee);
  }
  return out;
}

std::vector<char> TfliteEffects(const TfliteModel& model) {
  const size_t count = model.subgraphs.size();
  std::vector<std::vector<size_t>> callers(count);
  std::vector<char> effects(count, 0);
  std::vector<size_t> work;
  for (size_t i = 0; i < count; ++i) {
    for (const TfliteOp& op : model.subgraphs[i].ops) {
      for (size_t callee : TfliteCallees(op, count)) callers[callee].push_back(i);
      if (!TfliteWrites(op) || effects[i] != 0) continue;
      effects[i] = 1;
      work.push_back(i);
    }
  }
  while (!work.empty()) {
    const size_t at = work.back();
    work.pop_back();
    for (size_t caller : callers[at]) {
      if (effects[caller] != 0) continue;
      effects[caller] = 1;
      work.push_back(caller);
    }
  }
  return effects;
}

Result<std::vector<size_t>> TfliteInitialisers(const TfliteModel& model, size_t subgraph) {
  std::vector<size_t> out;
  for (const TfliteOp& op : model.subgraphs[subgraph].ops) {
    if (TfliteControlOf(op) != TfliteControl::kCallOnce) continue;
    ONCILLA_ASSIGN(const size_t callee, TfliteCallee(op, 0, model.subgraphs.size()));
    out.push_back(callee);
  }
  return out;
}

}  // namespace oncilla
