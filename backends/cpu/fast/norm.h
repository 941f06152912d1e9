// Normalisations of f32 and 16-bit floats on vectors.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Each returns null when the node is not supported here (another dtype, runs too short for
// vectors).
Result<std::unique_ptr<CpuKernel>> MakeFastSoftmax(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastLayerNorm(const NodeView& node);  // and RmsNorm
Result<std::unique_ptr<CpuKernel>> MakeFastInstanceNorm(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastGroupNorm(const NodeView& node);

}  // namespace oncilla::cpu
