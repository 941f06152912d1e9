// Einsum: lowers a sum of products, written with letters, to matrix products, sums and transposes.
//
// Supports any number of operands, ellipses, repeated letters, with or without the result's
// letters. Operands are combined from left to right; two that share summed letters become one
// MatMul, others a broadcast product.
#pragma once

#include <string>

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// What the sizes of axes with one letter must be: equal, or also one where another operand has a
// larger size.
enum class LabelSizes { kEqual, kStretch };

Result<Values> LowerEinsum(Lowering& b, std::string equation, LabelSizes sizes);

}  // namespace oncilla
