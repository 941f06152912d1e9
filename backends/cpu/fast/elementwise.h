// Elementwise programs on vectors of float.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Null when the node is not supported here: f64, or integers other than as input of a cast to
// floats.
Result<std::unique_ptr<CpuKernel>> MakeFastElementwise(const NodeView& node);

}  // namespace oncilla::cpu
