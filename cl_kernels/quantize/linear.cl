// quantize_linear: y = x / scale rounded half to even, plus zero, cut to [low, high]; a NaN becomes 0.
// dequantize_linear: y = (x - zero) * scale.
// x is [outer, places, inner] around an axis; element (o, j, i) takes number
// o * outer_step + j / block * place_step + i * inner_step of scale and, by steps of its own, of zero.
// One work-item per element. T, S, Z, Y: dtypes of x, scale, zero, y. HAS_ZERO: there is one.
// QUANTIZE: which of the two kernels is there.
// VARIANT: -DT=f32 -DS=f32 -DZ=u8 -DY=u8 -DHAS_ZERO=1 -DQUANTIZE=1 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f16 -DS=bf16 -DZ=i8 -DY=i8 -DHAS_ZERO=0 -DQUANTIZE=1 -DGROUP=64 -DIDX=long
// VARIANT: -DT=i32 -DS=f32 -DZ=i32 -DY=f16 -DHAS_ZERO=1 -DQUANTIZE=0 -DGROUP=64 -DIDX=int
#include "common/dtype.clh"

#define SIZES const IDX elements, const IDX places, const IDX inner
#define STEPS(name) const IDX name##_outer, const IDX name##_place, const IDX name##_inner, \
                    const IDX name##_block
#define OPERANDS __global const MEM(T)* restrict x, __global MEM(Y)* restrict y, \
                 __global const MEM(S)* restrict scale, __global const MEM(Z)* restrict zero
#define PLACE(name) (o * name##_outer + j / name##_block * name##_place + i * name##_inner)
#define FIND \
  const IDX at = get_global_id(0); \
  if (at >= elements) return; \
  const IDX i = at % inner, j = at / inner % places, o = at / inner / places;

#if QUANTIZE
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void quantize_linear(OPERANDS, SIZES, STEPS(scale), STEPS(zero), const float low, const float high) {
  FIND
  const float steps = (float)LOAD(T, x, at) / (float)LOAD(S, scale, PLACE(scale));
#if HAS_ZERO
  const float point = (float)LOAD(Z, zero, PLACE(zero));
#else
  const float point = 0.0f;
#endif
  const float v = rint(steps) + point;
  STORE(Y, y, at, isnan(v) ? 0 : convert_int_rte(clamp(v, low, high)));
}
#else
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void dequantize_linear(OPERANDS, SIZES, STEPS(scale), STEPS(zero)) {
  FIND
  long v = (long)LOAD(T, x, at);
#if HAS_ZERO
  v -= (long)LOAD(Z, zero, PLACE(zero));
#endif
  STORE(Y, y, at, (float)v * (float)LOAD(S, scale, PLACE(scale)));
}
#endif
