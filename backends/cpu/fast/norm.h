// Softmax, LayerNorm and RmsNorm of f32 on vectors.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Each is null when the node is not for it (another dtype, runs too short for vectors).
Result<std::unique_ptr<CpuKernel>> MakeFastSoftmax(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastLayerNorm(const NodeView& node);  // and RmsNorm

}  // namespace oncilla::cpu
