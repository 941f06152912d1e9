// Rows on quantised tensors that compute with integers, for the table in quantize.cc: by ranges
// (quantize_sums.cc) and by scales (quantize_uniform.cc).
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

// Real numbers as 32-bit integers of a range, computed in single precision.
Result<ValueId> WordsOf(TfLowering& b, ValueId x, ValueId least, ValueId most);

Result<Values> LowerQuantizedConv(TfLowering& b);
Result<Values> LowerQuantizedMatMul(TfLowering& b);
Result<Values> LowerQuantizedAdd(TfLowering& b);
Result<Values> LowerQuantizedBiasAdd(TfLowering& b);
Result<Values> LowerQuantizedMul(TfLowering& b);
Result<Values> LowerQuantizedAvgPool(TfLowering& b);
Result<Values> LowerQuantizedConcat(TfLowering& b);
Result<Values> LowerQuantizedRelu(TfLowering& b);
Result<Values> LowerQuantizedBatchNorm(TfLowering& b);
Result<Values> LowerQuantizedInstanceNorm(TfLowering& b);
Result<Values> LowerRequantizationRange(TfLowering& b);
Result<Values> LowerRequantize(TfLowering& b);
Result<Values> LowerShrinkRange(TfLowering& b);

Result<Values> LowerUniformQuantize(TfLowering& b);
Result<Values> LowerUniformDequantize(TfLowering& b);
Result<Values> LowerUniformRequantize(TfLowering& b);

}  // namespace oncilla
