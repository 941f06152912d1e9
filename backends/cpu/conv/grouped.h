// Fast convolution of narrow groups for float: vectors over output channels, of several groups at
// once. One product per group, as for wider groups, would leave most columns of its tiles empty.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// x[batch, in.., C], filter[taps, C / groups, M] (not packed) -> y[batch, out.., M]. Also the
// operands of few_outputs.h.
struct Grouped {
  WindowGeometry geometry;
  const float* x = nullptr;
  const float* filter = nullptr;
  float* y = nullptr;
  Epilogue<float> epilogue;
};

// Whether groups of this many channels are narrow on this machine.
bool AreNarrowGroups(int64_t in_each, int64_t out_each);
void RunGrouped(const Threads& threads, const Grouped& g);

}  // namespace oncilla::cpu
