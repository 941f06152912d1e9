// Fast depthwise convolution for float: every channel with its own filter, vectors over channels.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// x[batch, in.., C], filter[taps, C] as it stands -> y[batch, out.., C].
// T: float, Half or BFloat16, in memory; sums are of float.
template <class T>
struct Depthwise {
  WindowGeometry geometry;
  const T* x = nullptr;
  const T* filter = nullptr;
  T* y = nullptr;
  Epilogue<T> epilogue;
};

template <class T>
void RunDepthwise(const Threads& threads, const Depthwise<T>& d);

}  // namespace oncilla::cpu
