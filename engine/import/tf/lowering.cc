// Functions that the lowering functions of all families share, and the list of families.
#include "engine/import/tf/lowering.h"

#include <algorithm>
#include <unordered_map>

#include "engine/import/stablehlo/builder.h"
#include "engine/import/tf/graph/control.h"
#include "engine/ops/control.h"

namespace oncilla {

TfLowering::TfLowering(TfImportState& state, Graph& graph, const TfFlatNode& node, Values inputs,
                       std::vector<const TfFlatNode*> producers)
    : Lowering(graph, node.name, std::move(inputs)),
      state_(state),
      module_(state.module),
      source_(state.source),
      node_(node),
      producers_(std::move(producers)) {}

Result<Graph> TfLowering::Body(size_t function, const Facts& arguments) {
  if (function >= node_.bodies.size()) return DataLoss("lacks a function");
  const TfFlatGraph& flat = node_.bodies[function];
  if (flat.inputs.size() != arguments.size()) {
    return DataLoss("its function takes ", flat.inputs.size(), " arguments, not ",
                    arguments.size());
  }
  Graph body(graph_.shared_ops());
  Values values;
  for (const Fact& fact : arguments) {
    values.push_back(body.AddInput(StrCat("argument", values.size()), fact));
  }
  TfBuilder builder(state_, body, flat);
  ONCILLA_TRY(builder.Build(values));
  if (builder.failed()) return Unsupported(kTfBodyFailed);
  for (size_t i = 0; i < flat.outputs.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId value, builder.Output(i));
    if (value == kNoValue) return Unsupported("its function gives a handle");
    body.AddOutput(StrCat("result", i), value);
  }
  return body;
}

Result<Values> TfLowering::CallHlo(const HloModule& module, const Values& arguments) {
  return LowerHloFunction(module, "main", module_, graph_, name(), arguments);
}

Result<const TfFlatNode*> TfLowering::State(size_t i) const {
  const TfFlatNode* node = i < producers_.size() ? producers_[i] : nullptr;
  if (node != nullptr && node->kind == TfFlatNode::Kind::kState) return node;
  return Unsupported("input ", i, " is not a variable or table of the graph");
}

Result<ValueId> TfLowering::ReadVariable(const TfFlatNode& variable, std::string_view role) {
  return TfReadVariable(graph_, source_, variable, NameOf(role));
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
  return Add("ReadVariable", attrs, {}, role);
}

Status TfLowering::AssignVariable(std::string_view variable, ValueId value, std::string_view role) {
  const AssignVariableAttrs attrs{std::string(variable)};
  return AddAll("AssignVariable", attrs, {value}, role).status();
}

bool TfLowering::RanksStayOpen() const {
  const auto& inputs = module_.main.inputs();
  return std::all_of(inputs.begin(), inputs.end(), [&](const NamedValue& input) {
    const Fact& fact = module_.main.fact(input.value);
    // A vector of integers may be used as a shape; its length is then a rank, and so must be known.
    const PartialShape& shape = fact.shape;
    return shape.ranked() && (!IsInteger(fact.dtype) || shape.rank() != 1 || shape.known());
  });
}

bool TfLowering::SizesStayOpen() const {
  const auto& inputs = module_.main.inputs();
  return std::all_of(inputs.begin(), inputs.end(), [&](const NamedValue& input) {
    const Fact& fact = module_.main.fact(input.value);
    return fact.shape.known() && (!IsInteger(fact.dtype) || fact.shape.rank() > 2);
  });
}

std::vector<std::span<const TfOpRow>> TfOpFamilies() {
  return {TfElementwiseRows(), TfReduceRows(),   TfNormRows(),     TfMatMulRows(),
          TfConvRows(),        TfMovementRows(), TfIndexingRows(), TfRecurrentRows(),
          TfResizeRows(),      TfLinalgRows(),   TfSegmentRows(),  TfLossRows(),
          TfSparseRows(),      TfCheckRows(),    TfWindowRows(),   TfListRows(),
          TfStateRows(),       TfRecordRows(),   TfTextRows(),     TfImageRows(),
          TfRandomRows(),      TfQuantRows(),    TfGradientRows(), TfWindowGradientRows(),
          TfXlaRows(),         TfXlaCallRows()};
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

Result<TfLayout> ReadLayout(const TfLowering& b) {
  ONCILLA_ASSIGN(const std::string format, b.attrs().String("data_format"));
  if (format == "NHWC") return TfLayout{false, 4};
  if (format == "NCHW") return TfLayout{true, 4};
  if (format == "NDHWC") return TfLayout{false, 5};
  if (format == "NCDHW") return TfLayout{true, 5};
  return Unsupported("data_format ", format);
}

}  // namespace oncilla
