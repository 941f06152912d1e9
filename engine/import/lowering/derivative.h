// Derivatives of values that a graph computes, as further nodes of the graph: reverse-mode
// differentiation of canonical nodes, for formats that have an op for it.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// The derivatives of the sum of y's elements by each of xs. y depends on them through the graph's
// nodes from `first` on. Unimplemented, with the name of the node, where one has no rule.
Result<Values> AddDerivatives(Lowering& b, size_t first, ValueId y, std::span<const ValueId> xs);

}  // namespace oncilla
