// Einsum: a sum of products written with letters, as matrix products, sums and transposes.
//
// Any number of operands, ellipses, repeated letters, with or without the result's letters.
// Operands are taken in from left to right; two that share summed letters become one MatMul, others
// a stretched product.
#pragma once

#include <string>

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// What the axes of one letter must be: of equal sizes, or of size one where another operand has
// more.
enum class LabelSizes { kEqual, kStretch };

Result<Values> LowerEinsum(Lowering& b, std::string equation, LabelSizes sizes);

}  // namespace oncilla
