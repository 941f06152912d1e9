// Hash tables of a TFLite file. As for TensorFlow, a table is two variables of the module: its keys
// in ascending order, and their values.
#include <algorithm>

#include "engine/import/tflite/builder.h"
#include "engine/import/tflite/effects.h"
#include "engine/import/tflite/flex_op.h"

namespace oncilla {
namespace {

std::string KeysOf(const std::string& table) { return table + "/keys"; }
std::string ValuesOf(const std::string& table) { return table + "/values"; }

}  // namespace

// Finds the table that a handle names, and the types that the file states for it.
Result<Values> TfliteBuilder::LowerTableHandle(const TfliteOp& op) {
  std::string table;
  TfliteTable types;
  if (IsFlexOp(op)) {
    ONCILLA_ASSIGN(const std::unique_ptr<TfGraph> source, FlexNodeOf(op));
    const TfAttrs attrs = source->Attrs(source->main().nodes[0]);
    ONCILLA_ASSIGN(types.keys, attrs.Type("key_dtype"));
    ONCILLA_ASSIGN(types.values, attrs.Type("value_dtype"));
    ONCILLA_ASSIGN(const Bytes container, attrs.String("container"));
    ONCILLA_ASSIGN(const Bytes shared, attrs.String("shared_name"));
    if (shared.empty()) return Unsupported("without a name that its other handles share");
    table = StrCat("table ", container, "/", shared);
  } else {
    constexpr int kHashtableOptions = 107;
    if (op.options_type != kHashtableOptions || !op.options.valid()) {
      return DataLoss("does not say which table it is");
    }
    ONCILLA_ASSIGN(const int32_t id, op.options.Number<int32_t>(0, 0));
    ONCILLA_ASSIGN(const int8_t key_type, op.options.Number<int8_t>(1, 0));
    ONCILLA_ASSIGN(const int8_t value_type, op.options.Number<int8_t>(2, 0));
    types = {DTypeFromTflite(key_type), DTypeFromTflite(value_type)};
    // LiteRT supports only these types.
    const bool numbers = types.keys == DType::kI64 && types.values == DType::kString;
    const bool words = types.keys == DType::kString && types.values == DType::kI64;
    if (!numbers && !words) return Unsupported("of ", types.keys, " to ", types.values);
    table = StrCat("hash table ", id);
  }
  if (op.outputs.size() != 1 || op.outputs[0] == kNoTensor) return DataLoss("has no output");
  const auto known = state_.tables.emplace(table, types).first;
  if (known->second.keys != types.keys || known->second.values != types.values) {
    return DataLoss("its types differ from those elsewhere");
  }
  handles_[op.outputs[0]] = table;
  return Values{kNoValue};
}

Result<Values> TfliteBuilder::LowerTable(const TfliteOp& op, const std::string& name,
                                         const Values& inputs) {
  const TfliteControl kind = TfliteControlOf(op);
  if (kind == TfliteControl::kTable) return LowerTableHandle(op);
  const std::string table = op.inputs.empty() ? "" : HandleOf(op.inputs[0]);
  const auto known = state_.tables.find(table);
  if (known == state_.tables.end()) return DataLoss("its first input is not the handle of a table");
  const size_t needed = kind == TfliteControl::kTableSize ? 1 : 3;
  if (inputs.size() != needed) return DataLoss("has ", inputs.size(), " inputs");
  for (size_t i = 1; i < needed; ++i) {
    if (inputs[i] == kNoValue) return DataLoss("its input ", i, " is not a tensor");
  }
  auto& variables = state_.module.variables;
  const bool noted = std::any_of(variables.begin(), variables.end(),
                                 [&](const ModuleVariable& v) { return v.resource == table; });
  if (kind == TfliteControl::kTableImport) {
    if (state_.only != nullptr && !state_.only->contains(table)) return Values();
  } else if (op.outputs.size() != 1 || op.outputs[0] == kNoTensor) {
    return DataLoss("has no output");
  }
  if (!noted) {
    variables.push_back({KeysOf(table), table, Tensor()});
    variables.push_back({ValuesOf(table), table, Tensor()});
  }
  const auto add = [&](std::string_view role, std::string_view canonical, AttrMap attrs,
                       Values in) {
    return graph_.AddNode(role.empty() ? name : StrCat(name, "/", role), canonical, attrs, in,
                          {name});
  };
  const PartialShape list = PartialShape::OfRank(1);
  const auto read = [&](const std::string& variable, DType dtype, std::string_view role) {
    const ReadVariableAttrs attrs{variable, StrCat(Fact::Of(dtype, list))};
    return add(role, "ReadVariable", WriteAttrs(attrs), {});
  };
  if (kind == TfliteControl::kTableImport) {
    ONCILLA_ASSIGN(const Values sorted, add("sorted", "TableMake", {}, {inputs[1], inputs[2]}));
    const AssignVariableAttrs to_keys{KeysOf(table)}, to_values{ValuesOf(table)};
    ONCILLA_TRY(add("keep_keys", "AssignVariable", WriteAttrs(to_keys), {sorted[0]}).status());
    return add("keep_values", "AssignVariable", WriteAttrs(to_values), {sorted[1]});
  }
  ONCILLA_ASSIGN(const Values keys, read(KeysOf(table), known->second.keys, "table_keys"));
  if (kind == TfliteControl::kTableSize) {
    return add("", "Shape", WriteAttrs(ShapeAttrs()), {keys[0]});
  }
  ONCILLA_ASSIGN(const Values values, read(ValuesOf(table), known->second.values, "table_values"));
  return add("", "TableFind", {}, {keys[0], values[0], inputs[1], inputs[2]});
}

}  // namespace oncilla
