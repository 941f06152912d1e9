// Ops on quantised integers: the forms that rows of the families have in addition to those for real
// numbers. They give the results of LiteRT's reference kernels, exactly unless noted otherwise.
#pragma once

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// quantize_functions.cc: with one input.
Result<Values> LowerQuantisedAbs(TfliteLowering& b);
Result<Values> LowerQuantisedElu(TfliteLowering& b);
Result<Values> LowerQuantisedExp(TfliteLowering& b);
Result<Values> LowerQuantisedGelu(TfliteLowering& b);
Result<Values> LowerQuantisedHardSwish(TfliteLowering& b);
Result<Values> LowerQuantisedLeakyRelu(TfliteLowering& b);
Result<Values> LowerQuantisedLog(TfliteLowering& b);
Result<Values> LowerQuantisedLogistic(TfliteLowering& b);
Result<Values> LowerQuantisedRsqrt(TfliteLowering& b);
Result<Values> LowerQuantisedSqrt(TfliteLowering& b);
Result<Values> LowerQuantisedTanh(TfliteLowering& b);
// Clips to the real numbers from `least` to `most`.
Result<Values> LowerQuantisedRange(TfliteLowering& b, float least, float most);

// quantize_arithmetic.cc: with two inputs.
Result<Values> LowerQuantisedSum(TfliteLowering& b, std::string_view canonical, bool powers_of_two,
                                 int64_t activation);
Result<Values> LowerQuantisedProduct(TfliteLowering& b, int64_t activation);
Result<Values> LowerQuantisedQuotient(TfliteLowering& b, int64_t activation);
Result<Values> LowerQuantisedPRelu(TfliteLowering& b);
Result<Values> LowerQuantisedSquaredDifference(TfliteLowering& b);
Result<Values> LowerQuantisedComparison(TfliteLowering& b);

// quantize_norm.cc: softmax, its logarithm and normalisation to length one. Softmax of 16 bits is
// exact; the others are computed in float, as in LiteRT's faster kernels, and differ from its
// reference kernels by one step at most.
Result<Values> LowerQuantisedSoftmax(TfliteLowering& b);
Result<Values> LowerQuantisedLogSoftmax(TfliteLowering& b);
Result<Values> LowerQuantisedL2Normalization(TfliteLowering& b);

// quantize_image.cc: on images.
Result<Values> LowerQuantisedBilinear(TfliteLowering& b);
// Inputs: the shape of the result, the filter, x, bias, as in the form for real numbers.
Result<Values> LowerQuantisedConvTranspose(TfliteLowering& b, const ConvTransposeAttrs& attrs,
                                           ValueId sizes, int64_t activation);

}  // namespace oncilla
