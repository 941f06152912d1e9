// XLA's sorts, whose order is a body that compares two elements of each operand.
#pragma once

#include "engine/import/xla/body.h"

namespace oncilla {

// All operands in the order of the body, which takes two elements of each operand in turn. The body
// must compare one number computed from the first elements with the same computed from the second,
// and where these are equal, further ones: then each such number is a key to sort by.
Result<Values> LowerXlaSort(Lowering& b, const Values& operands, int64_t axis, const Graph& body);

}  // namespace oncilla
