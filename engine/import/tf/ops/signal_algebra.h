// Linear algebra and elementwise ops of tensors whose last axis is the parts of complex numbers.
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

Result<Values> LowerComplexMatMul(TfLowering& b);     // MatMul, BatchMatMul and its later versions
Result<Values> LowerComplexDecompose(TfLowering& b);  // decompositions and functions of matrices
Result<Values> LowerComplexSqrt(TfLowering& b);
Result<Values> LowerComplexEqual(TfLowering& b);  // Equal and NotEqual
Result<Values> LowerComplexSelect(TfLowering& b);
Result<Values> LowerComplexGather(TfLowering& b);
Result<Values> LowerComplexTile(TfLowering& b);
Result<Values> LowerComplexTranspose(TfLowering& b);  // Transpose and ConjugateTranspose

}  // namespace oncilla
