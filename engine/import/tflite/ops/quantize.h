// What ops on quantised tensors have alike.
#pragma once

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// DataLoss where a tensor's scales do not belong together, Unimplemented for other kinds.
Status CheckTfliteScales(const TfliteTensor& tensor);

// Scale, its inverse and zero point of a tensor that was checked, as f32 that stretches along it.
struct TfliteParameters {
  ValueId scale = kNoValue, per_scale = kNoValue, zero = kNoValue;
};
Result<TfliteParameters> TfliteParametersOf(TfliteLowering& b, const TfliteTensor& tensor);
// A vector along `axis` of a tensor of this rank; one number as it is.
Result<ValueId> TfliteAlong(TfliteLowering& b, Tensor numbers, int32_t axis, int rank);

// The range of an integer type.
struct TfliteIntegers {
  double least = 0, most = 0;
};
Result<TfliteIntegers> TfliteIntegersOf(DType dtype);

}  // namespace oncilla
