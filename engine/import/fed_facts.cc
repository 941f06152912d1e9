// Combines what a model states about its inputs with the tensors that a run feeds.
#include "engine/import/fed_facts.h"

#include <utility>

namespace oncilla {

void NarrowToFed(Fact& fact, const Fact* fed) {
  if (fed == nullptr || fact.kind != ValueKind::kTensor || fed->kind != ValueKind::kTensor) return;
  const PartialShape& known = fed->shape;
  if (!known.ranked()) return;
  if (!fact.shape.ranked() && known.rank() <= kMaxRank) fact.shape = known;
  if (known.rank() != fact.shape.rank()) return;
  for (int axis = 0; axis < fact.shape.rank(); ++axis) {
    Dim& dim = fact.shape[axis];
    if (!dim.known() && known[axis].known()) dim = known[axis];
  }
}

ValueId AddFedInput(Graph& graph, const std::string& name, Fact fact, const Fact* fed) {
  if (fed != nullptr && fed->has_value() && fact.kind == ValueKind::kTensor &&
      fed->dtype == fact.dtype && fact.shape.Accepts(fed->value.shape())) {
    return graph.AddConstant(fed->value, name);
  }
  return graph.AddInput(name, std::move(fact));
}

}  // namespace oncilla
