// Fast depthwise convolution for float: every channel with its own filter, vectors over channels.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// x[batch, in.., C], filter[taps, C] (not packed) -> y[batch, out.., C]. T is the type in memory:
// float, Half or BFloat16; sums are computed in float.
template <class T>
struct Depthwise {
  WindowGeometry geometry;
  const T* x = nullptr;
  const T* filter = nullptr;
  T* y = nullptr;
  Epilogue<T> epilogue;
  // Above 0: x is a ring of so many rows of one sample, with row h at (h + pad_begin) % ring. Only
  // without a depth axis.
  int64_t ring = 0;
  int64_t first = 0;  // the output row at which y and the residual begin
};

template <class T>
void RunDepthwise(const Threads& threads, const Depthwise<T>& d);
// Output rows [begin, end), counted over samples, depth and height.
void RunDepthwiseRows(const Depthwise<float>& d, int64_t begin, int64_t end);

}  // namespace oncilla::cpu
