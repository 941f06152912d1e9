// Windows laid out, and sums of windows with a filter; one work-item per element of y.
//
// extract_patches: y[pixel, tap, channel] is the element under that tap, or zero; T is an unsigned
// type of the element's size.
// dilation (DILATION): the largest sum of an element and its tap of w[tap, channel]; T is a dtype, C
// what the sum of two is kept in and LEAST its least value.
// VARIANT: -DT=uint -DIDX=int
// VARIANT: -DT=uchar -DIDX=long
// VARIANT: -DDILATION -DT=f32 -DWIDE=float -DLEAST=-INFINITY -DIDX=int
// VARIANT: -DDILATION -DT=i8 -DWIDE=char -DLEAST=SCHAR_MIN -DIDX=int
#include "common/dtype.clh"
#include "common/window.clh"

#ifndef DILATION
__kernel void extract_patches(__global const T* restrict x, __global T* restrict y,
                              const IDX total, const int channels, WINDOW_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int taps = kernel0 * kernel1 * kernel2;
  const int c = at % channels, tap = at / channels % taps;
  const IDX pixel = at / channels / taps, sample = pixel / out2 / out1 / out0;
  const int i0 = pixel / out2 / out1 % out0 * stride0 - pad0 + tap / kernel2 / kernel1 * dilation0;
  const int i1 = pixel / out2 % out1 * stride1 - pad1 + tap / kernel2 % kernel1 * dilation1;
  const int i2 = pixel % out2 * stride2 - pad2 + tap % kernel2 * dilation2;
  const bool seen = i0 >= 0 && i0 < in0 && i1 >= 0 && i1 < in1 && i2 >= 0 && i2 < in2;
  y[at] = seen ? x[(((sample * in0 + i0) * in1 + i1) * in2 + i2) * channels + c] : (T)0;
}
#else
__kernel void dilation(__global const MEM(T)* restrict x, __global const MEM(T)* restrict w,
                       __global MEM(T)* restrict y, const IDX total, const int channels,
                       WINDOW_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % channels;
  const IDX pixel = at / channels, sample = pixel / out2 / out1 / out0;
  const int s0 = pixel / out2 / out1 % out0 * stride0 - pad0;
  const int s1 = pixel / out2 % out1 * stride1 - pad1, s2 = pixel % out2 * stride2 - pad2;
  WIDE best = LEAST;
  for (int k0 = first_tap(s0, dilation0); k0 < last_tap(s0, dilation0, kernel0, in0); ++k0) {
    for (int k1 = first_tap(s1, dilation1); k1 < last_tap(s1, dilation1, kernel1, in1); ++k1) {
      for (int k2 = first_tap(s2, dilation2); k2 < last_tap(s2, dilation2, kernel2, in2); ++k2) {
        const IDX line = (sample * in0 + s0 + k0 * dilation0) * in1 + s1 + k1 * dilation1;
        const IDX from = line * in2 + s2 + k2 * dilation2;
        const WIDE sum = (WIDE)(LOAD(T, x, from * channels + c) +
                                LOAD(T, w, ((k0 * kernel1 + k1) * kernel2 + k2) * channels + c));
        if (sum > best || (isnan((float)sum) && !isnan((float)best))) best = sum;
      }
    }
  }
  STORE(T, y, at, best);
}
#endif
