// Optional values as lists.
#include "engine/import/onnx/optional.h"

#include "engine/ops/array/list.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

Result<ValueId> Number(Graph& graph, double value) {
  ONCILLA_ASSIGN(Tensor number, ScalarOf(DType::kI32, value));
  return graph.AddConstant(std::move(number));
}

}  // namespace

OnnxKind OnnxKindOf(const Graph& graph, const OnnxKinds& kinds, ValueId value) {
  if (graph.fact(value).kind != ValueKind::kList) return OnnxKind::kTensor;
  const auto it = kinds.find(Index(value));
  return it == kinds.end() ? OnnxKind::kSequence : it->second;
}

void MarkOnnxKind(const Graph& graph, OnnxKinds& kinds, ValueId value, OnnxKind kind) {
  if (OnnxKindOf(graph, kinds, value) != kind) kinds[Index(value)] = kind;
}

bool WrapsOnnxKind(OnnxKind plain, OnnxKind optional) {
  return (plain == OnnxKind::kTensor && optional == OnnxKind::kOptional) ||
         (plain == OnnxKind::kSequence && optional == OnnxKind::kOptionalSequence);
}

Result<ValueId> WrapOnnxOptional(Graph& graph, OnnxKinds& kinds, ValueId value,
                                 const std::string& name) {
  const OnnxKind kind = OnnxKindOf(graph, kinds, value);
  if (kind == OnnxKind::kSequence) {
    ONCILLA_ASSIGN(const ValueId one, Number(graph, 1));
    ONCILLA_ASSIGN(const ValueId length, graph.Add(name + "/length", "ListLength", {}, {value}));
    ONCILLA_ASSIGN(const ValueId longer, graph.Add(name + "/longer", "Add", {}, {length, one}));
    ONCILLA_ASSIGN(const ValueId held, graph.Add(name, "ListResize", {}, {value, longer}));
    MarkOnnxKind(graph, kinds, held, OnnxKind::kOptionalSequence);
    return held;
  }
  if (kind != OnnxKind::kTensor) return Unsupported("an optional value in another");
  const Fact list = Fact::List(graph.fact(value).dtype, graph.fact(value).shape);
  ONCILLA_ASSIGN(const ValueId none, EmptyOnnxList(graph, list, name + "/none"));
  ONCILLA_ASSIGN(const ValueId held, graph.Add(name, "ListPush", {}, {none, value}));
  MarkOnnxKind(graph, kinds, held, OnnxKind::kOptional);
  return held;
}

Result<ValueId> UnwrapOnnxOptional(Graph& graph, const OnnxKinds& kinds, ValueId optional,
                                   const std::string& name) {
  if (OnnxKindOf(graph, kinds, optional) == OnnxKind::kOptionalSequence) {
    return graph.Add(name, "ListErase", {}, {optional});
  }
  ONCILLA_ASSIGN(const ValueId first, Number(graph, 0));
  return graph.Add(name, "ListGet", WriteAttrs(ListGetAttrs{.zeros = false}), {optional, first});
}

Result<ValueId> EmptyOnnxList(Graph& graph, const Fact& type, const std::string& name) {
  const Fact list = Fact::List(type.dtype, type.shape);
  ONCILLA_ASSIGN(const ValueId zero, Number(graph, 0));
  return graph.Add(name, "ListReserve", WriteAttrs(ListReserveAttrs{DeclaredType(list)}), {zero});
}

}  // namespace oncilla
