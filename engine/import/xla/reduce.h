// XLA's reductions over axes, with a body that folds two numbers, or several pairs of numbers.
#pragma once

#include "engine/import/xla/body.h"

namespace oncilla {

// A result per operand. Bodies that are one op become reductions of that kind, pairs of a value and
// its index ArgMax or ArgMin; others are applied to halves of the operands again and again.
Result<Values> LowerXlaReduce(Lowering& b, const Values& operands, const Values& inits,
                              std::vector<int64_t> axes, const Graph& body);

}  // namespace oncilla
