// layer_norm: y = (x - mean) / sqrt(variance + epsilon) * scale + offset over rows of n elements, one
// group per row. CENTERED 0: x over its root mean square. SCALE, OFFSET: dtypes of the factors and
// offsets. HAS_SCALE, HAS_OFFSET: 0 none, 1 one for each of the n, 2 element k / step % size.
// T: dtype of x and y; computed in float, f64 in double. EACH: rows have at most EACH * GROUP elements and stay in
// registers: one pass over memory.
// VARIANT: -DT=f32 -DCENTERED=1 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=2 -DOFFSET=f32 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DCENTERED=1 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=1 -DOFFSET=f32 -DGROUP=128 -DIDX=int -DEACH=4
// VARIANT: -DT=f32 -DCENTERED=1 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=1 -DOFFSET=f32 -DGROUP=256 -DIDX=int -DEACH=4
// VARIANT: -DT=f32 -DCENTERED=0 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=0 -DOFFSET=f32 -DGROUP=256 -DIDX=int -DEACH=4
// VARIANT: -DT=f16 -DCENTERED=0 -DHAS_SCALE=1 -DSCALE=f16 -DHAS_OFFSET=0 -DOFFSET=f16 -DGROUP=256 -DIDX=int -DEACH=16
// VARIANT: -DT=bf16 -DCENTERED=0 -DHAS_SCALE=0 -DSCALE=f32 -DHAS_OFFSET=0 -DOFFSET=f32 -DGROUP=1 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define UNROLL _Pragma("unroll")
#define ACC CARRY(T)
DEFINE_GROUP_JOIN(group_sum, ACC, PLUS)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void layer_norm(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
#if HAS_SCALE
                __global const MEM(SCALE)* restrict scale, const IDX scale_step, const IDX scale_size,
#endif
#if HAS_OFFSET
                __global const MEM(OFFSET)* restrict offset, const IDX offset_step,
                const IDX offset_size,
#endif
                const IDX n, const float epsilon) {
  __local ACC tmp[GROUP];
  const int id = get_local_id(0);
  const IDX base = (IDX)get_group_id(0) * n;
  ACC mean = 0, square = 0;
#ifdef EACH
  ACC held[EACH];
  UNROLL for (int i = 0; i < EACH; ++i) {
    const IDX k = id + i * GROUP;
    held[i] = 0;
    if (k < n) held[i] = LOAD(T, x, base + k);
  }
#define FOR_ROW                                    \
  UNROLL for (int i = 0; i < EACH; ++i) {          \
    const IDX k = id + i * GROUP;                  \
    if (k >= n) break;
#define X_AT held[i]
#else
#define FOR_ROW for (IDX k = id; k < n; k += GROUP) {
#define X_AT LOAD(T, x, base + k)
#endif
#if CENTERED
  FOR_ROW
    mean += X_AT;
  }
  mean = group_sum(mean, tmp) / n;
#endif
  FOR_ROW
    const ACC v = X_AT - mean;
    square += v * v;
  }
  const ACC factor = 1 / sqrt(group_sum(square, tmp) / n + epsilon);
  FOR_ROW
    ACC v = (X_AT - mean) * factor;
#if HAS_SCALE
    v *= LOAD(SCALE, scale, HAS_SCALE == 1 ? k : k / scale_step % scale_size);
#endif
#if HAS_OFFSET
    v += LOAD(OFFSET, offset, HAS_OFFSET == 1 ? k : k / offset_step % offset_size);
#endif
    STORE(T, y, base + k, v);
  }
}
