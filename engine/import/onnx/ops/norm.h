// What norms of ONNX and of com.microsoft have in common.
#pragma once

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// The results of a norm of x over the axes from `axis` on besides its output, as f32 with those
// axes of size 1: the mean, and 1 / sqrt(variance + epsilon). If it is not `centred`, the mean is
// kNoValue, and the mean of the squares is used for the variance.
struct NormStatistics {
  ValueId mean = kNoValue, inverse = kNoValue;
};
Result<NormStatistics> AddNormStatistics(OnnxLowering& b, ValueId x, int rank, int64_t axis,
                                         double epsilon, bool centred);

}  // namespace oncilla
