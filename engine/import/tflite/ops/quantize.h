// What ops on quantised tensors have alike.
#pragma once

#include <vector>

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

// From sums of products to the integers of the output: `sums` are whole numbers in f64, whose last
// axis has a factor for each place, or one for all. Rounded twice, as LiteRT's reference kernels
// for int8 do it (its faster ones differ from them, and from each other, by one step in a
// thousandth of the elements); then cut to the range that the activation leaves.
Result<ValueId> TfliteRequantised(TfliteLowering& b, ValueId sums,
                                  const std::vector<double>& factors, int64_t activation);
// Input i less its zero point, as f64, in which sums of their products are exact.
Result<ValueId> TfliteCentred(TfliteLowering& b, size_t i);
// Whether x, weights and the output are int8, and the rest as int8 ops have it.
Status CheckTfliteInt8(const TfliteLowering& b, size_t x, size_t weights, size_t bias);
// The factors from sums of products of x and weights to the output's steps.
std::vector<double> TfliteFactors(const TfliteLowering& b, size_t x, size_t weights);

}  // namespace oncilla
