// Pools: one work-item per element of y, channels fastest. WIDE is float, double, long or ulong.
//
// max_pool: LEAST is the dtype's least value; with INDICES also where the first largest stands in
// the whole of x as it is, or (CHANNELS_FIRST) as if its channels came before its pixels.
// average_pool: with COUNT_PADS the divisor counts padding, up to its end end0...
// lp_pool: the p-th root of the sum of p-th powers.
// VARIANT: -DT=f32 -DWIDE=float -DIDX=int -DLEAST=-INFINITY
// VARIANT: -DT=f16 -DWIDE=float -DIDX=long -DLEAST=-INFINITY -DINDICES -DCHANNELS_FIRST -DCOUNT_PADS
#include "common/dtype.clh"
#include "common/window.clh"

// Declares the place of this work-item and runs `body` with `from` for every input pixel seen.
#define PLACE                                                                                   \
  const IDX at = get_global_id(0);                                                              \
  if (at >= total) return;                                                                      \
  const int c = at % channels;                                                                  \
  const IDX pixel = at / channels, sample = pixel / out2 / out1 / out0;                         \
  const int o2 = pixel % out2, o1 = pixel / out2 % out1, o0 = pixel / out2 / out1 % out0;       \
  const int s0 = o0 * stride0 - pad0, s1 = o1 * stride1 - pad1, s2 = o2 * stride2 - pad2;       \
  const int f0 = first_tap(s0, dilation0), f1 = first_tap(s1, dilation1);                       \
  const int f2 = first_tap(s2, dilation2), l0 = last_tap(s0, dilation0, kernel0, in0);          \
  const int l1 = last_tap(s1, dilation1, kernel1, in1), l2 = last_tap(s2, dilation2, kernel2, in2);
#define FOR_SEEN(body)                                                                          \
  for (int k0 = f0; k0 < l0; ++k0) {                                                            \
    for (int k1 = f1; k1 < l1; ++k1) {                                                          \
      const IDX line = (sample * in0 + s0 + k0 * dilation0) * in1 + s1 + k1 * dilation1;        \
      for (int k2 = f2; k2 < l2; ++k2) {                                                        \
        const IDX from = line * in2 + s2 + k2 * dilation2;                                      \
        body                                                                                    \
      }                                                                                         \
    }                                                                                           \
  }

#ifdef LEAST
__kernel void max_pool(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
#ifdef INDICES
                       __global long* restrict index,
#endif
                       const IDX total, const int channels, WINDOW_PARAMS) {
  PLACE
  WIDE best = LEAST;
  IDX where = -1;
  FOR_SEEN(const WIDE v = LOAD(T, x, from * channels + c);
           if (where < 0 || v > best || (v != v && best == best)) {
             best = v;
             where = from;
           })
  STORE(T, y, at, best);
#ifdef INDICES
#ifdef CHANNELS_FIRST
  const IDX pixels = (IDX)in0 * in1 * in2;
  index[at] = where < 0 ? -1 : (where / pixels * channels + c) * pixels + where % pixels;
#else
  index[at] = where < 0 ? -1 : where * channels + c;
#endif
#endif
}
#else

// Taps of a window up to the end of the padding.
int padded_taps(const int start, const int dilation, const int kernel_size, const int end) {
  return min(kernel_size, (end - start + dilation - 1) / dilation);
}

__kernel void average_pool(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                           const IDX total, const int channels, WINDOW_PARAMS, const int end0,
                           const int end1, const int end2) {
  PLACE
  WIDE sum = 0;
  FOR_SEEN(sum += LOAD(T, x, from * channels + c);)
#ifdef COUNT_PADS
  const WIDE seen = (WIDE)padded_taps(s0, dilation0, kernel0, end0) *
                    (WIDE)padded_taps(s1, dilation1, kernel1, end1) *
                    (WIDE)padded_taps(s2, dilation2, kernel2, end2);
#else
  const WIDE seen = (WIDE)max(0, l0 - f0) * (WIDE)max(0, l1 - f1) * (WIDE)max(0, l2 - f2);
#endif
  const WIDE mean = seen == 0 ? (WIDE)0 : sum / seen;
  STORE(T, y, at, mean);
}

__kernel void lp_pool(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                      const IDX total, const int channels, WINDOW_PARAMS, const float p) {
  PLACE
  WIDE sum = 0;
  FOR_SEEN(const WIDE v = fabs(LOAD(T, x, from * channels + c));
           sum += p == 2 ? v * v : p == 1 ? v : pow(v, (WIDE)p);)
  const WIDE root = p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, 1 / (WIDE)p);
  STORE(T, y, at, root);
}
#endif
