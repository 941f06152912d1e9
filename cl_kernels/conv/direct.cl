// Convolutions without any blocking: any dtype T, groups, three spatial axes; sums in WIDE (float or
// double). One work-item per element of y, channels fastest.
//
// conv: y[n][o][c] = activation(bias[c] + residual + sum over taps and channels of a group of
// x[n][o * stride + k * dilation - pad][i] filter[k][i][c]); a tap of the filter has `run` rows, of which
// the first in_group count.
// transpose: the gradient of that: y has the sizes `in`, x the sizes `out`; filter[k][c][i].
// VARIANT: -DT=f32 -DWIDE=float -DIDX=int -DACTIVATION=ACT_none
// VARIANT: -DT=f16 -DWIDE=float -DIDX=long -DACTIVATION=ACT_gelu -DBIAS -DRESIDUAL
#include "common/dtype.clh"
#include "common/activation.clh"
#include "common/window.clh"

__kernel void conv(__global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#ifdef BIAS
                   __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
                   __global const MEM(T)* restrict residual,
#endif
                   __global MEM(T)* restrict y, const IDX total, const int channels,
                   const int out_channels, const int in_group, const int out_group,
                   const int run, WINDOW_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % out_channels;
  const IDX pixel = at / out_channels;
  const int o2 = pixel % out2, o1 = pixel / out2 % out1, o0 = pixel / out2 / out1 % out0;
  const IDX sample = pixel / out2 / out1 / out0;
  const int s0 = o0 * stride0 - pad0, s1 = o1 * stride1 - pad1, s2 = o2 * stride2 - pad2;
  const int l0 = last_tap(s0, dilation0, kernel0, in0), l1 = last_tap(s1, dilation1, kernel1, in1);
  const int l2 = last_tap(s2, dilation2, kernel2, in2);
  WIDE sum = 0;
#ifdef BIAS
  sum += (WIDE)LOAD(T, bias, c);
#endif
#ifdef RESIDUAL
  sum += (WIDE)LOAD(T, residual, at);
#endif
  for (int k0 = first_tap(s0, dilation0); k0 < l0; ++k0) {
    for (int k1 = first_tap(s1, dilation1); k1 < l1; ++k1) {
      for (int k2 = first_tap(s2, dilation2); k2 < l2; ++k2) {
        const IDX from = ((sample * in0 + s0 + k0 * dilation0) * in1 + s1 + k1 * dilation1) * in2 +
                         s2 + k2 * dilation2;
        const IDX x_at = from * channels + c / out_group * in_group;
        const IDX w_at = (IDX)((k0 * kernel1 + k1) * kernel2 + k2) * run * out_channels + c;
        for (int i = 0; i < in_group; ++i) {
          sum += (WIDE)LOAD(T, x, x_at + i) * (WIDE)LOAD(T, filter, w_at + (IDX)i * out_channels);
        }
      }
    }
  }
  STORE(T, y, at, ACTIVATE(ACTIVATION, WIDE, sum));
}

// The window that has place `i` at tap `k`, or -1.
int window_at(const int i, const int k, const int stride, const int dilation, const int pad,
              const int count) {
  const int start = i + pad - k * dilation;
  return start < 0 || start % stride != 0 || start / stride >= count ? -1 : start / stride;
}

__kernel void transpose(__global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#ifdef BIAS
                        __global const MEM(T)* restrict bias,
#endif
                        __global MEM(T)* restrict y, const IDX total, const int channels,
                        const int out_channels, const int in_group, const int out_group,
                        WINDOW_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % out_channels;
  const IDX pixel = at / out_channels;
  const int i2 = pixel % in2, i1 = pixel / in2 % in1, i0 = pixel / in2 / in1 % in0;
  const IDX sample = pixel / in2 / in1 / in0;
  WIDE sum = 0;
#ifdef BIAS
  sum += (WIDE)LOAD(T, bias, c);
#endif
  const int group = c / out_group * in_group;
  for (int k0 = 0; k0 < kernel0; ++k0) {
    const int o0 = window_at(i0, k0, stride0, dilation0, pad0, out0);
    if (o0 < 0) continue;
    for (int k1 = 0; k1 < kernel1; ++k1) {
      const int o1 = window_at(i1, k1, stride1, dilation1, pad1, out1);
      if (o1 < 0) continue;
      for (int k2 = 0; k2 < kernel2; ++k2) {
        const int o2 = window_at(i2, k2, stride2, dilation2, pad2, out2);
        if (o2 < 0) continue;
        const IDX x_at =
            (((sample * out0 + o0) * out1 + o1) * out2 + o2) * channels + group;
        const IDX w_at =
            ((IDX)((k0 * kernel1 + k1) * kernel2 + k2) * out_group + c % out_group) * channels +
            group;
        for (int i = 0; i < in_group; ++i) {
          sum += (WIDE)LOAD(T, x, x_at + i) * (WIDE)LOAD(T, filter, w_at + i);
        }
      }
    }
  }
  STORE(T, y, at, sum);
}
