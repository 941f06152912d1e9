// transpose_few: a strided box of which one axis has N elements, N known when the program is built,
// and the other lies along memory in x or in y; what pictures with a few channels need.
// INTERLEAVE 1: y[i * N + j] = x[i + j * step]; 0: y[i + j * step] = x[i * N + j], for i < size and
// j < N. A work-item takes `block` neighbouring i along global axis 0; AXES more axes are gone
// through by global axis 2. T only moves.
// VARIANT: -DT=uint -DI=int -DAXES=1 -DN=3 -DINTERLEAVE=1
// VARIANT: -DT=uint -DI=int -DAXES=0 -DN=3 -DINTERLEAVE=0
// VARIANT: -DT=uchar -DI=long -DAXES=2 -DN=4 -DINTERLEAVE=1
#include "common/axes.clh"

#define PARAMS(i) const I n##i, const I f##i, const I t##i,
#define PLACE(i) { const I a = r % n##i; r /= n##i; from += a * f##i; to += a * t##i; }

__kernel void transpose_few(__global const T* restrict x, __global T* restrict y, const I size,
                            const I step, const I block, EACH(AXES, PARAMS) const long x_start,
                            const long y_start, const long x_offset, const long y_offset) {
  long from = x_offset + x_start, to = y_offset + y_start;
  I r = get_global_id(2);
  (void)r;
  EACH(AXES, PLACE)
  const I first = (I)get_global_id(0) * block, last = min(first + block, size);
  x += from;
  y += to;
  for (I i = first; i < last; ++i) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
#if INTERLEAVE
      y[i * N + j] = x[i + j * step];
#else
      y[i + j * step] = x[i * N + j];
#endif
    }
  }
}
