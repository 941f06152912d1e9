// Variables and tables that change: reads and writes become nodes with effects, which keep their
// order. A table is two variables: its keys in ascending order, and their values.
#include <algorithm>
#include <charconv>

#include "engine/base/file.h"
#include "engine/import/tf/graph/control.h"
#include "engine/import/tf/lowering.h"
#include "engine/import/tf/op_kinds.h"
#include "engine/ops/control.h"

namespace oncilla {
namespace {

Result<Values> LowerRead(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* variable, b.State(0));
  return One(b.ReadVariable(*variable));
}

// Users of the reference that Assign returns read the new value.
Result<Values> LowerAssign(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* variable, b.State(0));
  ValueId value = b.in(1);
  const std::string_view op = b.op();
  if (op.substr(0, 9) == "AssignAdd" || op.substr(0, 9) == "AssignSub") {
    ONCILLA_ASSIGN(const ValueId old, b.ReadVariable(*variable, "read"));
    ONCILLA_ASSIGN(value, b.Add(op.substr(6, 3), {}, {old, value}, "sum"));
  }
  ONCILLA_TRY(b.AssignVariable(variable->name, value));
  return Values{value};
}

// Sets or changes rows of a variable, chosen by indices.
Result<Values> LowerScatter(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* variable, b.State(0));
  ONCILLA_ASSIGN(const ValueId old, b.ReadVariable(*variable, "read"));
  std::string_view how = b.op();
  how.remove_prefix(how.find("Scatter") + 7);
  ValueId indices = b.in(1);
  if (how.substr(0, 2) == "Nd") {
    how.remove_prefix(2);
  } else {
    ONCILLA_ASSIGN(indices, b.Add("Unsqueeze", {}, {indices, b.Ints({-1})}, "indices"));
  }
  ScatterNDAttrs attrs;
  ValueId updates = b.in(2);
  if (how == "Add") attrs.reduction = "add";
  if (how == "Mul") attrs.reduction = "mul";
  if (how == "Min") attrs.reduction = "min";
  if (how == "Max") attrs.reduction = "max";
  if (how == "Sub") {
    attrs.reduction = "add";
    ONCILLA_ASSIGN(updates, b.Add("Neg", {}, {updates}, "updates"));
  }
  if (attrs.reduction == "none" && how != "Update") return Unsupported("this way of changing rows");
  ONCILLA_ASSIGN(const ValueId value, b.Add(attrs, {old, indices, updates}, "rows"));
  ONCILLA_TRY(b.AssignVariable(variable->name, value));
  return Values{value};
}

// A variable that never changes has a value. For one that changes, this is known only at run time,
// unless it was stored with a value.
Result<Values> LowerHasValue(TfLowering& b) {
  bool known = b.in(0) != kNoValue;
  if (!known) {
    ONCILLA_ASSIGN(const TfFlatNode* variable, b.State(0));
    known = b.HasFirstValue(variable->name);
  }
  if (!known) return Unsupported("whether a variable that is assigned while running has a value");
  const std::byte yes{1};
  return Values{b.Constant(Tensor::Copy({DType::kBool, {}}, {&yes, 1}))};
}

// Assigns to a slice of a variable.
Result<Values> LowerSliceAssign(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* variable, b.State(0));
  ONCILLA_ASSIGN(const ValueId old, b.ReadVariable(*variable, "read"));
  ONCILLA_ASSIGN(const ValueId value, UpdateTfSlice(b, old, b.in(4), "updated"));
  ONCILLA_TRY(b.AssignVariable(variable->name, value));
  return Values{value};
}

Result<Values> LowerIdentity(TfLowering& b) { return Values{b.in(0)}; }

// The capacity of a stack is ignored, since it only limits programs that do not stop pushing.
Result<Values> LowerStackPush(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* stack, b.State(0));
  ONCILLA_ASSIGN(const ValueId old, b.ReadVariable(*stack, "read"));
  ONCILLA_ASSIGN(const ValueId longer, b.Add("ListPush", {}, {old, b.in(1)}, "pushed"));
  ONCILLA_TRY(b.AssignVariable(stack->name, longer));
  return Values{b.in(1)};
}

Result<Values> LowerStackPop(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* stack, b.State(0));
  ONCILLA_ASSIGN(const ValueId old, b.ReadVariable(*stack, "read"));
  ONCILLA_ASSIGN(const Values rest_and_top, b.AddAll("ListPop", {}, {old}));
  ONCILLA_TRY(b.AssignVariable(stack->name, rest_and_top[0]));
  return Values{rest_and_top[1]};
}

Result<Values> LowerStackClose(TfLowering&) { return Values{}; }

struct Table {
  std::string name;
  ValueId keys, values;
};

// Adds reads of a table's keys and values.
Result<Table> ReadTable(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* node, b.State(0));
  Table table;
  table.name = node->name;
  const auto part = [&](const char* attr, std::string variable, PartialShape shape,
                        std::string_view role) -> Result<ValueId> {
    ONCILLA_ASSIGN(const DType dtype, b.AttrsOf(*node).Type(attr));
    const ReadVariableAttrs read{std::move(variable), StrCat(Fact::Of(dtype, std::move(shape)))};
    return b.Add("ReadVariable", WriteAttrs(read), {}, role);
  };
  ONCILLA_ASSIGN(table.keys, part("key_dtype", TfTableKeys(table.name),
                                  PartialShape(std::vector<Dim>(1)), "keys"));
  ONCILLA_ASSIGN(table.values,
                 part("value_dtype", TfTableValues(table.name), PartialShape(), "values"));
  return table;
}

Status WriteTable(TfLowering& b, const std::string& name, const Values& keys_and_values) {
  ONCILLA_TRY(b.AssignVariable(TfTableKeys(name), keys_and_values[0], "keys"));
  return b.AssignVariable(TfTableValues(name), keys_and_values[1], "values");
}

Result<Values> LowerFind(TfLowering& b) {
  ONCILLA_ASSIGN(const Table table, ReadTable(b));
  return One(b.Add("TableFind", {}, {table.keys, table.values, b.in(1), b.in(2)}));
}

Result<Values> LowerTableSize(TfLowering& b) {
  ONCILLA_ASSIGN(const Table table, ReadTable(b));
  return One(b.Add("Size", {}, {table.keys}));
}

Result<Values> LowerExport(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* node, b.State(0));
  if (node->op().find("Dense") != std::string_view::npos) {
    return Unsupported("the buckets of a dense table");
  }
  ONCILLA_ASSIGN(const Table table, ReadTable(b));
  return Values{table.keys, table.values};
}

Result<Values> LowerInitialise(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* node, b.State(0));
  ONCILLA_ASSIGN(const Values sorted, b.AddAll("TableMake", {}, {b.in(1), b.in(2)}));
  ONCILLA_TRY(WriteTable(b, node->name, sorted));
  return Values{};
}

Result<Values> LowerInsert(TfLowering& b) {
  ONCILLA_ASSIGN(const Table table, ReadTable(b));
  ONCILLA_ASSIGN(const Values merged,
                 b.AddAll("TableInsert", {}, {table.keys, table.values, b.in(1), b.in(2)}));
  ONCILLA_TRY(WriteTable(b, table.name, merged));
  return Values{};
}

Result<Values> LowerRemove(TfLowering& b) {
  ONCILLA_ASSIGN(const Table table, ReadTable(b));
  ONCILLA_ASSIGN(const Values left,
                 b.AddAll("TableRemove", {}, {table.keys, table.values, b.in(1)}));
  ONCILLA_TRY(WriteTable(b, table.name, left));
  return Values{};
}

// A column of a vocabulary file may also be the line's number, or the whole line.
constexpr int64_t kLineNumber = -1;
constexpr int64_t kWholeLine = -2;

Result<Tensor> Column(std::span<const std::string_view> lines, int64_t column, DType dtype,
                      std::string_view delimiter) {
  const Shape shape{static_cast<int64_t>(lines.size())};
  std::vector<std::string> text;
  std::vector<int64_t> ints;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (column == kLineNumber) {
      ints.push_back(static_cast<int64_t>(i));
      continue;
    }
    std::string_view field = lines[i];
    for (int64_t skipped = 0; column >= 0; ++skipped) {
      const size_t end = field.find(delimiter);
      if (skipped == column) {
        field = field.substr(0, end);
        break;
      }
      if (end == std::string_view::npos) {
        return InvalidArgument("line ", i + 1, " of the vocabulary has no field ", column);
      }
      field.remove_prefix(end + delimiter.size());
    }
    text.emplace_back(field);
  }
  if (column == kLineNumber) {
    if (dtype != DType::kI64) return InvalidArgument("line numbers are i64, not ", dtype);
    return Tensor::Int64s(ints);
  }
  if (dtype == DType::kString) return Tensor::Strings(shape, std::move(text));
  if (dtype != DType::kI64 && dtype != DType::kI32) {
    return Unsupported("a vocabulary column of ", dtype);
  }
  for (const std::string& word : text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      return InvalidArgument("'", word.substr(0, 40), "' in the vocabulary is not a number");
    }
    ints.push_back(value);
  }
  if (dtype == DType::kI64) return Tensor::Int64s(ints);
  const std::vector<int32_t> narrow(ints.begin(), ints.end());
  return Tensor::Of<int32_t>(DType::kI32, shape, narrow);
}

Result<Values> LowerInitialiseFromFile(TfLowering& b) {
  ONCILLA_ASSIGN(const TfFlatNode* node, b.State(0));
  const Fact& name = b.in_fact(1);
  if (!name.has_value() || name.dtype != DType::kString || name.value.elements() != 1) {
    return Unsupported("the name of its file is computed while running");
  }
  ONCILLA_ASSIGN(const auto file, b.OpenAsset(name.value.strings()[0]));
  ONCILLA_ASSIGN(const int64_t key_index, b.attrs().Int("key_index"));
  ONCILLA_ASSIGN(const int64_t value_index, b.attrs().Int("value_index"));
  ONCILLA_ASSIGN(const int64_t vocab_size, b.attrs().Int("vocab_size"));
  ONCILLA_ASSIGN(const std::string delimiter, b.attrs().String("delimiter"));
  if (delimiter.empty() || key_index < kWholeLine || value_index < kWholeLine) {
    return InvalidArgument("columns ", key_index, " and ", value_index, " of a vocabulary");
  }
  std::vector<std::string_view> lines;
  std::string_view rest = file->text();
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
  }
  if (vocab_size >= 0) {
    if (std::ssize(lines) < vocab_size) {
      return InvalidArgument("the vocabulary '", file->path(), "' has ", lines.size(),
                             " lines, not ", vocab_size);
    }
    lines.resize(static_cast<size_t>(vocab_size));
  }
  const auto column = [&](const char* attr, int64_t index) -> Result<ValueId> {
    ONCILLA_ASSIGN(const DType dtype, b.AttrsOf(*node).Type(attr));
    ONCILLA_ASSIGN(Tensor values, Column(lines, index, dtype, delimiter));
    return b.Constant(std::move(values));
  };
  ONCILLA_ASSIGN(const ValueId keys, column("key_dtype", key_index));
  ONCILLA_ASSIGN(const ValueId values, column("value_dtype", value_index));
  ONCILLA_ASSIGN(const Values sorted, b.AddAll("TableMake", {}, {keys, values}));
  ONCILLA_TRY(WriteTable(b, node->name, sorted));
  return Values{};
}

constexpr TfOpRow kRows[] = {
    {"Assign", 2, "", LowerAssign, true},
    {"AssignAdd", 2, "", LowerAssign, true},
    {"AssignAddVariableOp", 2, "", LowerAssign, true},
    {"AssignSub", 2, "", LowerAssign, true},
    {"AssignSubVariableOp", 2, "", LowerAssign, true},
    {"AssignVariableOp", 2, "", LowerAssign, true},
    {"Identity", 1, "", LowerIdentity},
    {"InitializeTable", 3, "", LowerInitialise, true},
    {"InitializeTableFromTextFile", 2, "", LowerInitialiseFromFile, true},
    {"InitializeTableFromTextFileV2", 2, "", LowerInitialiseFromFile, true},
    {"InitializeTableV2", 3, "", LowerInitialise, true},
    {"IsVariableInitialized", 1, "", LowerHasValue, true},
    {"LookupTableExport", 1, "", LowerExport, true},
    {"LookupTableExportV2", 1, "", LowerExport, true},
    {"LookupTableFind", 3, "", LowerFind, true},
    {"LookupTableFindV2", 3, "", LowerFind, true},
    {"LookupTableImport", 3, "", LowerInitialise, true},
    {"LookupTableImportV2", 3, "", LowerInitialise, true},
    {"LookupTableInsert", 3, "", LowerInsert, true},
    {"LookupTableInsertV2", 3, "", LowerInsert, true},
    {"LookupTableRemoveV2", 2, "", LowerRemove, true},
    {"LookupTableSize", 1, "", LowerTableSize, true},
    {"LookupTableSizeV2", 1, "", LowerTableSize, true},
    {"ReadVariableOp", 1, "", LowerRead, true},
    {"ResourceScatterAdd", 3, "", LowerScatter, true},
    {"ResourceScatterMax", 3, "", LowerScatter, true},
    {"ResourceScatterMin", 3, "", LowerScatter, true},
    {"ResourceScatterMul", 3, "", LowerScatter, true},
    {"ResourceScatterNdAdd", 3, "", LowerScatter, true},
    {"ResourceScatterNdMax", 3, "", LowerScatter, true},
    {"ResourceScatterNdMin", 3, "", LowerScatter, true},
    {"ResourceScatterNdSub", 3, "", LowerScatter, true},
    {"ResourceScatterNdUpdate", 3, "", LowerScatter, true},
    {"ResourceScatterSub", 3, "", LowerScatter, true},
    {"ResourceScatterUpdate", 3, "", LowerScatter, true},
    {"ResourceStridedSliceAssign", 5, "", LowerSliceAssign, true},
    {"ScatterAdd", 3, "", LowerScatter, true},
    {"ScatterMax", 3, "", LowerScatter, true},
    {"ScatterMin", 3, "", LowerScatter, true},
    {"ScatterMul", 3, "", LowerScatter, true},
    {"ScatterNdAdd", 3, "", LowerScatter, true},
    {"ScatterNdMax", 3, "", LowerScatter, true},
    {"ScatterNdMin", 3, "", LowerScatter, true},
    {"ScatterNdSub", 3, "", LowerScatter, true},
    {"ScatterNdUpdate", 3, "", LowerScatter, true},
    {"ScatterSub", 3, "", LowerScatter, true},
    {"ScatterUpdate", 3, "", LowerScatter, true},
    {"StackClose", 1, "", LowerStackClose, true},
    {"StackCloseV2", 1, "", LowerStackClose, true},
    {"StackPop", 1, "", LowerStackPop, true},
    {"StackPopV2", 1, "", LowerStackPop, true},
    {"StackPush", 2, "", LowerStackPush, true},
    {"StackPushV2", 2, "", LowerStackPush, true},
    {"StridedSliceAssign", 5, "", LowerSliceAssign, true},
    {"VarIsInitializedOp", 1, "", LowerHasValue, true},
};

}  // namespace

std::span<const TfOpRow> TfStateRows() { return kRows; }

}  // namespace oncilla
