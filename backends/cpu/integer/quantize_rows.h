// Real numbers to bytes with a scale, and perhaps a zero point, for each row, as TFLite's products
// of dynamic range quantise their operands.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/math/elementwise_program.h"

namespace oncilla::cpu {

// A kernel for the elementwise program
//   Cast(Add(Clip(RoundAway(Add(Mul(x, steps), zero)), least, most), moved)) {to=u8}
// with or without the zero, for a dense x of f32, and steps and zero that are one number or one for
// each row of the last axis; null for any other program.
std::unique_ptr<CpuKernel> MakeQuantizeRows(const NodeView& node, const ElementwiseProgram& program,
                                            const BroadcastAxes& axes);

}  // namespace oncilla::cpu
