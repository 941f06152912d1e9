// Einsum: a sum of products written with letters, as matrix products, sums and transposes.
//
// Any number of operands, ellipses and repeated letters. Operands are taken in from left to right;
// two that share summed letters become one MatMul, others a stretched product.
#pragma once

#include "engine/import/onnx_lowering.h"

namespace oncilla {

Result<Values> LowerOnnxEinsum(OnnxLowering& b);

}  // namespace oncilla
