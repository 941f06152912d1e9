// The main graph: its inputs, its nodes (through the builder), its outputs.
#include "engine/import/onnx/import.h"

#include "engine/import/fed_facts.h"
#include "engine/import/onnx/builder.h"
#include "engine/import/onnx/tensor.h"

namespace oncilla {
namespace {

// The names that the nodes to be lowered read, besides the wanted outputs.
OnnxNames NeededNames(const OnnxImportRequest& request, std::span<const OnnxNode> nodes,
                      std::span<const size_t> order) {
  OnnxNames needed(request.outputs.begin(), request.outputs.end());
  for (size_t i : order) {
    needed.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
    needed.insert(nodes[i].captures.begin(), nodes[i].captures.end());
  }
  return needed;
}

Status AddInputs(const OnnxImportRequest& request, std::span<const size_t> order,
                 OnnxScope& scope) {
  const OnnxNames needed = NeededNames(request, scope.nodes, order);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorInfo& info = request.inputs[i];
    const Fact* fed = i < request.fed.size() ? &request.fed[i] : nullptr;
    if (request.only_needed_inputs && !needed.contains(info.name)) continue;
    if (scope.values.contains(info.name)) {
      return InvalidArgument("input '", info.name, "' is given twice");
    }
    auto fact = OnnxInputFact(info, fed);
    if (!fact.ok()) return In(fact.status(), StrCat("input '", info.name, "'"));
    const ValueId value = AddFedInput(scope.target.graph, info.name, *std::move(fact), fed);
    scope.values[info.name] = value;
    if (info.kind == TensorInfo::Kind::kOptional) {
      scope.target.optionals[Index(value)] = OnnxKind::kOptional;
    } else if (info.kind == TensorInfo::Kind::kOptionalSequence) {
      scope.target.optionals[Index(value)] = OnnxKind::kOptionalSequence;
    }
  }
  return {};
}

// If an output were computed as a type other than the declared one, callers that rely on the
// declaration would misread it.
Status CheckOutputType(const OnnxGraph& graph, const std::string& name, const Fact& fact) {
  for (const OnnxValueInfo& output : graph.outputs) {
    if (output.name != name || output.kind != OnnxKind::kTensor) continue;
    const DType declared = DTypeFromOnnx(output.element_type);
    if (fact.kind != ValueKind::kTensor || output.element_type == 0 || declared == fact.dtype) {
      continue;
    }
    return DataLoss("output '", name, "' is declared ", OnnxTypeName(output.element_type),
                    " and computed as ", fact.dtype);
  }
  return {};
}

}  // namespace

Result<Fact> OnnxInputFact(const TensorInfo& info, const Fact* fed) {
  if (info.dtype == DType::kInvalid) {
    return Unsupported("it is not a tensor, or has a type that the engine lacks");
  }
  Fact fact = info.kind == TensorInfo::Kind::kTensor ? Fact::Of(info.dtype, info.shape)
                                                     : Fact::List(info.dtype, info.shape);
  NarrowToFed(fact, fed);
  if (!fact.shape.ranked()) return fact;
  if (fact.shape.rank() > kMaxRank) return Unsupported("its rank is ", fact.shape.rank());
  for (int axis = 0; axis < fact.shape.rank(); ++axis) {
    Dim& dim = fact.shape[axis];
    // Elements of a sequence may have different sizes.
    if (fact.kind == ValueKind::kList && !dim.known()) dim = Dim();
    if (fact.kind == ValueKind::kList) continue;
    if (!dim.known() && dim.name.empty()) dim.name = StrCat(info.name, ".", axis);
  }
  return fact;
}

Result<Module> ImportOnnx(const OnnxModel& model, const OnnxImportRequest& request,
                          const OnnxContext& context, const std::shared_ptr<const OpSet>& ops) {
  OnnxImportState state(model, context, ops);
  OnnxTarget target(state.module.main);
  OnnxScope scope(target, model.graph.nodes, model.opsets);
  scope.main = &model.graph;
  ONCILLA_TRY(scope.Take(model.graph));
  const std::vector<std::string_view> wanted(request.outputs.begin(), request.outputs.end());
  OnnxNames known, given;
  for (const TensorInfo& info : request.inputs) known.insert(info.name);
  for (const auto& [name, tensor] : scope.initializers) given.insert(name);
  known.insert(given.begin(), given.end());
  for (const OnnxValueInfo& info : model.graph.inputs) given.insert(info.name);
  ONCILLA_ASSIGN(const std::vector<size_t> order,
                 OrderOnnxNodes(scope.nodes, wanted, known, given));
  ONCILLA_TRY(AddInputs(request, order, scope));
  OnnxBuilder builder(state, scope);
  ONCILLA_TRY(builder.BuildNodes(order));
  for (const std::string& name : request.outputs) {
    ONCILLA_ASSIGN(const ValueId value, builder.Find(name));
    if (value == kNoValue) continue;
    ONCILLA_TRY(CheckOutputType(model.graph, name, target.graph.fact(value)));
    target.graph.AddOutput(name, value);
  }
  if (!state.unsupported.empty()) return state.unsupported.ToStatus();
  return std::move(state.module);
}

}  // namespace oncilla
