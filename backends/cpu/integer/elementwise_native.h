// Elementwise programs on integers and booleans at the width of their types.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/math/elementwise_program.h"

namespace oncilla::cpu {

// Null when a step is not supported: dtypes other than i32, i64, u8, bool and f32, integer
// division, shifts and powers. Results for integers and booleans equal those of plain code.
std::unique_ptr<CpuKernel> MakeNativeElementwise(const NodeView& node,
                                                 const ElementwiseProgram& program,
                                                 const BroadcastAxes& axes);

}  // namespace oncilla::cpu
