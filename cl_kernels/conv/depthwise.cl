// depthwise: every channel with its own filter[taps][channels]; channels a multiple of VEC. T is
// as in common/vector.clh; sums are of float.
// Work-item (vector of channels, stretch of a row, row of y): the pixels of the stretch, PIXELS at a
// time, so that a weight is read once for several of them. Taps outside the input are left out.
// With WIDTH and STEP, the filter's taps and the stride along a row (without dilation), pixels share
// what they read of it: a row of taps reads each pixel of x and each weight once.
// VARIANT: -DVEC=1 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_none
// VARIANT: -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_relu6 -DBIAS -DWIDTH=3 -DSTEP=1
// VARIANT: -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_relu6 -DBIAS -DWIDTH=3 -DSTEP=2
// VARIANT: -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_silu -DBIAS -DWIDTH=5 -DSTEP=1
// VARIANT: -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_silu -DBIAS -DWIDTH=5 -DSTEP=2
// VARIANT: -DT=f16 -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_none -DBIAS -DRESIDUAL -DWIDTH=3 -DSTEP=1
// VARIANT: -DVEC=16 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_silu -DBIAS -DWIDTH=5 -DSTEP=1
// VARIANT: -DVEC=4 -DPIXELS=2 -DIDX=long -DACTIVATION=ACT_relu6 -DBIAS -DRESIDUAL
// VARIANT: -DT=f16 -DVEC=8 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_relu6 -DBIAS
// VARIANT: -DT=bf16 -DVEC=4 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_none -DRESIDUAL
// VARIANT: -DT=f16 -DVEC=1 -DPIXELS=1 -DIDX=int -DACTIVATION=ACT_none
// VARIANT: -DVEC=16 -DPIXELS=4 -DIDX=int -DACTIVATION=ACT_silu -DBIAS
#include "common/vector.clh"
#include "common/quad.clh"
#include "common/window.clh"
// Places are multiples of a vector.
#if VEC == 4
#define READ(p) LOAD4(p)
#define WRITE(v, p) STORE4(v, p)
#else
#define READ(p) VLOAD(p)
#define WRITE(v, p) VSTORE(v, p)
#endif

__kernel void depthwise(__global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#ifdef BIAS
                        __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
                        __global const MEM(T)* restrict residual,
#endif
                        __global MEM(T)* restrict y, const int channels, const int stretch,
                        WINDOW_PARAMS) {
  const int c = (int)get_global_id(0) * VEC;
  if (c >= channels) return;
  const IDX row = get_global_id(2);
  const int o0 = row / out1 % out0, o1 = row % out1, begin = (int)get_global_id(1) * stretch;
  const IDX sample = row / out1 / out0;
  const int end = min(out2, begin + stretch);
  const int s0 = o0 * stride0 - pad0, s1 = o1 * stride1 - pad1;
  const int f0 = first_tap(s0, dilation0), f1 = first_tap(s1, dilation1);
  const int l0 = last_tap(s0, dilation0, kernel0, in0), l1 = last_tap(s1, dilation1, kernel1, in1);
  const IDX in_row = (IDX)in2 * channels;
  for (int o = begin; o < end; o += PIXELS) {
    const int s2 = o * stride2 - pad2;
    const int inside = s2 >= 0 && s2 + (PIXELS - 1) * stride2 + (kernel2 - 1) * dilation2 < in2;
    VF sum[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
      sum[p] = 0;
#ifdef BIAS
      sum[p] += READ(bias + c);
#endif
    }
    for (int k0 = f0; k0 < l0; ++k0) {
      for (int k1 = f1; k1 < l1; ++k1) {
        __global const MEM(T)* line =
            x + ((sample * in0 + s0 + k0 * dilation0) * in1 + s1 + k1 * dilation1) * in_row + c;
        __global const MEM(T)* w = filter + (IDX)(k0 * kernel1 + k1) * kernel2 * channels + c;
#ifdef WIDTH
        if (inside) {
          VF seen[(PIXELS - 1) * STEP + WIDTH];
#pragma unroll
          for (int j = 0; j < (PIXELS - 1) * STEP + WIDTH; ++j) {
            seen[j] = READ(line + (s2 + j) * channels);
          }
#pragma unroll
          for (int k2 = 0; k2 < WIDTH; ++k2) {
            const VF weight = READ(w + k2 * channels);
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) sum[p] = fma(seen[k2 + p * STEP], weight, sum[p]);
          }
          continue;
        }
#endif
        for (int k2 = 0; k2 < kernel2; ++k2) {
          const VF weight = READ(w + k2 * channels);
          const int i = s2 + k2 * dilation2;
          if (inside) {
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) {
              sum[p] = fma(READ(line + (i + p * stride2) * channels), weight, sum[p]);
            }
          } else {
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) {
              const int at = i + p * stride2;
              if (at >= 0 && at < in2) sum[p] = fma(READ(line + at * channels), weight, sum[p]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
      if (o + p < end) {
        const IDX at = (row * out2 + o + p) * channels + c;
#ifdef RESIDUAL
        sum[p] += READ(residual + at);
#endif
        WRITE(ACTIVATE(ACTIVATION, VF, sum[p]), y + at);
      }
    }
  }
}
