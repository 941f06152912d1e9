// What all families' lowering functions share, and the list of families.
#include "engine/import/tf_lowering.h"

#include <algorithm>
#include <unordered_map>

#include "engine/import/tf_control.h"
#include "engine/ops/control.h"
#include "engine/tensor/scalar.h"

namespace oncilla {

Result<Values> TfLowering::AddAll(std::string_view op, AttrMap attrs, Values inputs,
                                  std::string_view role) {
  std::string name = node_.name;
  if (!role.empty()) name += "/" + std::string(role);
  auto outputs = graph_.AddNode(name, op, std::move(attrs), std::move(inputs), {node_.name});
  if (outputs.ok() || outputs.status().code() != Code::kUnimplemented) return outputs;
  // Refusals are listed by op and reason, so the reason must not name the node once more.
  std::string reason = Message(outputs.status());
  const std::string prefix = StrCat("node '", name, "' (", op, "): ");
  if (reason.substr(0, prefix.size()) == prefix) reason.erase(0, prefix.size());
  return Unsupported(op, ": ", reason);
}

Result<ValueId> TfLowering::Add(std::string_view op, AttrMap attrs, Values inputs,
                                std::string_view role) {
  ONCILLA_ASSIGN(const Values outputs, AddAll(op, std::move(attrs), std::move(inputs), role));
  return outputs[0];
}

ValueId TfLowering::Ints(std::vector<int64_t> values) {
  return graph_.AddConstant(Tensor::Int64s(values));
}

Result<ValueId> TfLowering::Scalar(DType dtype, double value) {
  ONCILLA_ASSIGN(Tensor tensor, ScalarOf(dtype, value));
  return graph_.AddConstant(std::move(tensor));
}

Result<ValueId> TfLowering::Transpose(ValueId x, std::vector<int64_t> perm, std::string_view role) {
  return Add("Transpose", {}, {x, Ints(std::move(perm))}, role);
}

Result<std::vector<int64_t>> TfLowering::KnownInts(size_t input, std::string_view what) const {
  if (input >= inputs_.size()) return DataLoss("input ", input, " is missing");
  if (!AllIntsKnown(in_fact(input))) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return NeedInts(in_fact(input), what);
}

Result<int64_t> TfLowering::KnownInt(size_t input, std::string_view what) const {
  ONCILLA_ASSIGN(const std::vector<int64_t> values, KnownInts(input, what));
  if (values.size() != 1) return InvalidArgument(what, " must be one number");
  return values[0];
}

Result<int> TfLowering::KnownRank(size_t input, std::string_view what) const {
  if (input >= inputs_.size()) return DataLoss("input ", input, " is missing");
  if (!in_fact(input).shape.ranked()) return Unsupported("the rank of ", what, " is not known");
  return in_fact(input).shape.rank();
}

Result<const TfFlatNode*> TfLowering::State(size_t i) const {
  const TfFlatNode* node = i < producers_.size() ? producers_[i] : nullptr;
  if (node != nullptr && node->kind == TfFlatNode::Kind::kState) return node;
  return Unsupported("input ", i, " is not a variable or table of the graph");
}

Result<ValueId> TfLowering::ReadVariable(const TfFlatNode& variable, std::string_view role) {
  std::string name = node_.name;
  if (!role.empty()) name += "/" + std::string(role);
  return TfReadVariable(graph_, source_, variable, std::move(name));
}

bool TfLowering::HasFirstValue(std::string_view variable) const {
  return std::any_of(module_.variables.begin(), module_.variables.end(),
                     [&](const auto& v) { return v.name == variable && v.initial.valid(); });
}

Result<ValueId> TfLowering::ReadOwnVariable(const std::string& variable, Tensor first,
                                            std::string_view role) {
  auto& variables = module_.variables;
  const bool known = std::any_of(variables.begin(), variables.end(),
                                 [&](const ModuleVariable& v) { return v.name == variable; });
  const ReadVariableAttrs attrs{variable, StrCat(first.desc())};
  if (!known) variables.push_back({variable, variable, std::move(first)});
  return Add("ReadVariable", WriteAttrs(attrs), {}, role);
}

Status TfLowering::AssignVariable(std::string_view variable, ValueId value, std::string_view role) {
  const AssignVariableAttrs attrs{std::string(variable)};
  return AddAll("AssignVariable", WriteAttrs(attrs), {value}, role).status();
}

std::vector<std::span<const TfOpRow>> TfOpFamilies() {
  return {TfElementwiseRows(), TfReduceRows(),   TfNormRows(),      TfMatMulRows(), TfConvRows(),
          TfMovementRows(),    TfIndexingRows(), TfRecurrentRows(), TfResizeRows(), TfLinalgRows(),
          TfSegmentRows(),     TfLossRows(),     TfSparseRows(),    TfCheckRows(),  TfWindowRows(),
          TfListRows(),        TfStateRows(),    TfRecordRows(),    TfTextRows(),   TfImageRows(),
          TfRandomRows(),      TfQuantRows()};
}

const TfOpRow* FindTfOp(std::string_view op) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const TfOpRow*> map;
    for (std::span<const TfOpRow> family : TfOpFamilies()) {
      for (const TfOpRow& row : family) map.emplace(row.op, &row);
    }
    return map;
  }();
  const auto it = rows.find(op);
  return it == rows.end() ? nullptr : it->second;
}

const TfOpRow* FindTfComplexOp(std::string_view op) {
  for (const TfOpRow& row : TfComplexRows()) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

std::vector<int64_t> TfLayout::ToLast() const {
  std::vector<int64_t> perm = {0};
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> TfLayout::ToFirst() const {
  std::vector<int64_t> perm = {0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) perm.push_back(i);
  return perm;
}

Result<TfLayout> ReadLayout(const TfLowering& b) {
  ONCILLA_ASSIGN(const std::string format, b.attrs().String("data_format"));
  if (format == "NHWC") return TfLayout{false, 4};
  if (format == "NCHW") return TfLayout{true, 4};
  if (format == "NDHWC") return TfLayout{false, 5};
  if (format == "NCDHW") return TfLayout{true, 5};
  return Unsupported("data_format ", format);
}

}  // namespace oncilla
