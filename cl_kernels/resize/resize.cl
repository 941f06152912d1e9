// resize: x[n][in0][in1][in2][channels] -> y[n][out0][out1][out2][channels], axis by axis as tables in
// engine/ops/nn/resize.cc would do it, and with the same roundings: coordinates in float without
// contraction, divisions rounded correctly. One work-item per element of y, channels fastest.
//
// TAPS: 1 nearest (elements of T are only moved; RULE says how to round), 2 linear, 4 cubic, 0 area.
// Otherwise T is a dtype's name, WIDE float or double; integers are rounded to even and stop at the
// ends of their range.
// With CROP an output whose place lies outside x is `outside` (TYPE: the dtype, where elements are
// only moved).
// VARIANT: -DTAPS=1 -DT=uint -DIDX=int -DRULE=RULE_round_prefer_floor
// VARIANT: -DTAPS=1 -DT=ushort -DTYPE=bf16 -DCROP=1 -DIDX=int -DRULE=RULE_floor
// VARIANT: -DTAPS=2 -DT=u8 -DWIDE=double -DCROP=1 -DIDX=int
// VARIANT: -DTAPS=2 -DT=f32 -DWIDE=float -DIDX=int
// VARIANT: -DTAPS=4 -DT=f16 -DWIDE=float -DIDX=long -DEXCLUDE_OUTSIDE -DSTEPS=1024
// VARIANT: -DTAPS=4 -DT=f32 -DWIDE=float -DIDX=int
// VARIANT: -DTAPS=0 -DT=bf16 -DWIDE=float -DIDX=int
#include "common/dtype.clh"
#include "common/elementwise.clh"
#pragma OPENCL FP_CONTRACT OFF

// One axis: sizes, and the coordinates of output o as ((o + before) * multiply / divide, if divide is
// not 0, + offset) + after. `inverse` is 1 / divide.
#define AXIS(i)                                                                                    \
  const int in##i, const int out##i, const float before##i, const float multiply##i,               \
      const float divide##i, const float inverse##i, const float offset##i, const float after##i
#define COORDINATE(i, o) \
  coordinate(o, in##i, before##i, multiply##i, divide##i, inverse##i, offset##i, after##i)

float coordinate(const int o, const int in, const float before, const float multiply,
                 const float divide, const float inverse, const float offset, const float after) {
  float x = ((float)o + before) * multiply;
  if (divide != 0) {
    const float q = x * inverse;
    x = fma(fma(-q, divide, x), inverse, q);
  }
  x = (offset + x) + after;
  const float far = (float)in + 2;
  return x != x ? 0.0f : clamp(x, -far, 2 * far);
}

#ifdef CROP
#define CROP_PARAM const float outside,
#define OUTSIDE(i, o) (COORDINATE(i, o) < 0 || COORDINATE(i, o) > (float)(in##i - 1))
#else
#define CROP_PARAM
#endif

#if TAPS == 1
#define RULE_floor(x) floor(x)
#define RULE_ceil(x) ceil(x)
#define RULE_round(x) round(x)
// What nearly is a tie is one.
#define TIE 1e-6f
#define RULE_round_prefer_ceil(x) (floor(x) + ((x) - floor(x) < 0.5f - TIE ? 0 : 1))
#define RULE_round_prefer_floor(x) (floor(x) + ((x) - floor(x) <= 0.5f + TIE ? 0 : 1))
#define NEAREST(i, o) clamp((int)RULE(COORDINATE(i, o)), 0, in##i - 1)

__kernel void resize(__global const T* restrict x, __global T* restrict y, const IDX total,
                     const int channels, CROP_PARAM AXIS(0), AXIS(1), AXIS(2)) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % channels;
  const IDX pixel = at / channels;
  const int o2 = pixel % out2, o1 = pixel / out2 % out1, o0 = pixel / out2 / out1 % out0;
  const IDX sample = pixel / out2 / out1 / out0;
#ifdef CROP
  if (OUTSIDE(0, o0) || OUTSIDE(1, o1) || OUTSIDE(2, o2)) {
    STORE(TYPE, (__global MEM(TYPE)*)y, at, outside);
    return;
  }
#endif
  const int i0 = NEAREST(0, o0), i1 = NEAREST(1, o1), i2 = NEAREST(2, o2);
  y[at] = x[(((sample * in0 + i0) * in1 + i1) * in2 + i2) * channels + c];
}
#else

// Integers reach their dtype through the cuts of the elementwise table, rounded.
#define FINISH_f32(v) STORE(T, y, at, v)
#define FINISH_f64(v) STORE(T, y, at, v)
#define FINISH_f16(v) STORE(T, y, at, v)
#define FINISH_bf16(v) STORE(T, y, at, v)
#define FINISH_INTEGER(type, v) STORE(type, y, at, CAT(CUT_d_, type)(rint(v)))
#define FINISH_i8(v) FINISH_INTEGER(i8, v)
#define FINISH_i16(v) FINISH_INTEGER(i16, v)
#define FINISH_i32(v) FINISH_INTEGER(i32, v)
#define FINISH_i64(v) FINISH_INTEGER(i64, v)
#define FINISH_u8(v) FINISH_INTEGER(u8, v)
#define FINISH_u16(v) FINISH_INTEGER(u16, v)
#define FINISH_u32(v) FINISH_INTEGER(u32, v)
#define FINISH_u64(v) FINISH_INTEGER(u64, v)

#if TAPS > 0
// Fills the inputs that an output at x sees, and their weights.
void taps_of(const float x, const int in, const WIDE a, int* index, float* weight) {
#if TAPS == 2
  const float inside = clamp(x, 0.0f, (float)(in - 1));
  index[0] = (int)inside;
  index[1] = min(index[0] + 1, in - 1);
  weight[1] = inside - (float)index[0];
  weight[0] = 1 - weight[1];
#else
  const float base = floor(x);
  WIDE t = (WIDE)(x - base), w[4];
#ifdef EXCLUDE_OUTSIDE
  WIDE sum = 0;
#endif
#ifdef STEPS
  t = rint(t * STEPS) / STEPS;
#endif
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int i = (int)base - 1 + k;
    const WIDE d = fabs(t - (k - 1));
    index[k] = clamp(i, 0, in - 1);
    w[k] = d < 1   ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : (WIDE)0;
#ifdef EXCLUDE_OUTSIDE
    if (i != index[k]) w[k] = 0;
    sum += w[k];
#endif
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#ifdef EXCLUDE_OUTSIDE
    if (sum != 0) w[k] /= sum;
#endif
    weight[k] = (float)w[k];
  }
#endif
}
#endif

__kernel void resize(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                     const IDX total, const int channels, const float cubic_a, CROP_PARAM AXIS(0),
                     AXIS(1), AXIS(2)) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % channels;
  const IDX pixel = at / channels;
  const int o2 = pixel % out2, o1 = pixel / out2 % out1, o0 = pixel / out2 / out1 % out0;
  const IDX sample = pixel / out2 / out1 / out0;
  WIDE sum = 0;
#ifdef CROP
  if (OUTSIDE(0, o0) || OUTSIDE(1, o1) || OUTSIDE(2, o2)) {
    CAT(FINISH_, T)((WIDE)outside);
    return;
  }
#endif
#if TAPS > 0
  int i0[TAPS], i1[TAPS], i2[TAPS];
  float w0[TAPS], w1[TAPS], w2[TAPS];
  taps_of(COORDINATE(0, o0), in0, cubic_a, i0, w0);
  taps_of(COORDINATE(1, o1), in1, cubic_a, i1, w1);
  taps_of(COORDINATE(2, o2), in2, cubic_a, i2, w2);
  // An axis that is not there has one tap.
  const int n0 = in0 == 1 && out0 == 1 ? 1 : TAPS, n1 = in1 == 1 && out1 == 1 ? 1 : TAPS;
  for (int a = 0; a < n0; ++a) {
    for (int b = 0; b < n1; ++b) {
      const WIDE w = (n0 == 1 ? (WIDE)1 : (WIDE)w0[a]) * (n1 == 1 ? (WIDE)1 : (WIDE)w1[b]);
      for (int d = 0; d < TAPS; ++d) {
        const IDX from = ((sample * in0 + i0[a]) * in1 + i1[b]) * in2 + i2[d];
        sum += w * (WIDE)w2[d] * (WIDE)LOAD(T, x, from * channels + c);
      }
    }
  }
#else
  // The stretch of input that each axis covers; `multiply` is the ratio of sizes.
#define STRETCH(i)                                                                     \
  const float b##i = (float)o##i * multiply##i, e##i = (float)(o##i + 1) * multiply##i; \
  const int f##i = (int)floor(b##i), l##i = max(f##i + 1, (int)ceil(e##i));
#define SHARE(i, k)                                                                     \
  (e##i > b##i ? (min((float)(k + 1), e##i) - max((float)k, b##i)) * inverse##i : 1.0f)
  STRETCH(0)
  STRETCH(1)
  STRETCH(2)
  for (int k0 = f0; k0 < l0; ++k0) {
    for (int k1 = f1; k1 < l1; ++k1) {
      const WIDE w = (WIDE)SHARE(0, k0) * (WIDE)SHARE(1, k1);
      const IDX line = (sample * in0 + min(k0, in0 - 1)) * in1 + min(k1, in1 - 1);
      for (int k2 = f2; k2 < l2; ++k2) {
        const IDX from = line * in2 + min(k2, in2 - 1);
        sum += w * (WIDE)SHARE(2, k2) * (WIDE)LOAD(T, x, from * channels + c);
      }
    }
  }
#endif
  CAT(FINISH_, T)(sum);
}
#endif
