// Fast depthwise convolution for float: every channel with its own filter, vectors over channels.
#pragma once

#include "backends/cpu/gemm.h"
#include "engine/ops/conv_geometry.h"

namespace oncilla::cpu {

// x[batch, in.., C], filter[taps, C] as it stands -> y[batch, out.., C].
struct Depthwise {
  WindowGeometry geometry;
  const float* x = nullptr;
  const float* filter = nullptr;
  float* y = nullptr;
  Epilogue epilogue;
};

void RunDepthwise(ThreadPool* threads, const Depthwise& d);

}  // namespace oncilla::cpu
