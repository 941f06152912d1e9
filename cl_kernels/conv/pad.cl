// pad: x[n][in0][in1][in2][channels] -> y[n][size0][size1][size2][channels] with zeros around it
// (ZERO: with a zero point); what lies at `before` in y is where x begins. T is as in common/vector.clh, or u8 or i8. One work-item per row of y.
// VARIANT: -DIDX=int
// VARIANT: -DIDX=long -DT=f16
// VARIANT: -DIDX=int -DT=u8 -DZERO
#include "common/vector.clh"
__kernel void pad(__global const RAW(T)* restrict x, __global RAW(T)* restrict y,
#ifdef ZERO
                  __global const RAW(T)* restrict zero,
#endif
                  const int channels,
                  const int in0, const int in1, const int in2, const int size0, const int size1,
                  const int size2, const int before0, const int before1, const int before2) {
#ifdef ZERO
  const RAW(T) outside = zero[0];
#else
  const RAW(T) outside = 0;
#endif
  const IDX row = get_global_id(0);
  const int i1 = (int)(row % size1) - before1, i0 = (int)(row / size1 % size0) - before0;
  __global RAW(T)* to = y + row * size2 * channels;
  const int all = size2 * channels, left = min(before2 * channels, all);
  if (i0 < 0 || i0 >= in0 || i1 < 0 || i1 >= in1) {
    for (int i = 0; i < all; ++i) to[i] = outside;
    return;
  }
  const int middle = min(in2 * channels, all - left);
  __global const RAW(T)* from = x + ((row / size1 / size0 * in0 + i0) * in1 + i1) * in2 * channels;
  for (int i = 0; i < left; ++i) to[i] = outside;
  to += left;
  for (int i = 0; i < middle; ++i) to[i] = from[i];
  for (int i = middle; i < all - left; ++i) to[i] = outside;
}
