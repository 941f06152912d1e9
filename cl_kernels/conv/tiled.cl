// tiled: Conv as a product by tiles (common/tile.clh), sums in float, each in the order of K
// whatever the tile; T is f32, f16 or bf16. Rows are output pixels, columns the output channels of
// a filter group, and K goes over the taps and, in each, the group's channels rounded up to a
// multiple of 4 (run): the filter is [tap][run][out_channels]. A is gathered from x as it stands. A
// work-item brings one quad of K of A_LOADS pixels: their places are worked out once, and what the
// quad adds to them, `at`, walks along the channels and then from tap to tap by compares and
// additions. A_WIDE: channels and those of a group are multiples of 4. SEEN is a type with a bit
// for each tap along each axis, set where the pixel's window meets the input there; without it
// (windows of more than 64 such bits) places are compared in the loop. NARROW: run < TILE_K. PART,
// part_count and part_k are as in matmul/tiled.cl, z counts the filter groups.
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_none -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=1 -DA_WIDE=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_none -DTM=8 -DTN=4 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=1
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_silu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DSEEN=ulong -DNARROW=0 -DA_WIDE=1 -DB_WIDE=0 -DY_WIDE=0 -DPART=0 -DBIAS
// VARIANT: -DT=bf16 -DIDX=long -DACTIVATION=ACT_gelu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DNARROW=1 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0 -DPART=0 -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=long -DACTIVATION=ACT_none -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=2 -DSEEN=uint -DNARROW=1 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0 -DPART=1
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=1 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=4 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
#define A_ALONG 1
#define B_ALONG 0
#include "common/tile.clh"
#include "common/window.clh"
#if NARROW
#define WHEN while
#else
#define WHEN if
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void tiled(
    __global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#if PART
    __global float* restrict parts, const IDX part_count, const IDX part_k,
#else
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y,
#endif
    const IDX column_tiles, const IDX rows, const IDX columns, const IDX k, const int run,
    const int channels, const int out_channels, const int in_group, WINDOW_PARAMS) {
  __local float tile[2 * STAGE] __attribute__((aligned(16)));
  TILE_IDS
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, z = get_group_id(1);
  const IDX row0 = row_tile * TILE_M;
  const IDX column0 = ((IDX)get_group_id(0) - row_tile * column_tiles) * TILE_N;
#if PART
  const IDX group = z / part_count, first = (z - group * part_count) * part_k;
  const IDX end = min(k, first + part_k);
#else
  const IDX group = z, first = 0, end = k;
  const IDX y0 = group * columns, y_row = out_channels, bias0 = y0;
#endif
  x += group * in_group;
  filter += group * columns;

  IDX pixel[A_LOADS];
#ifdef SEEN
  SEEN seen[A_LOADS];
#else
  int s0[A_LOADS], s1[A_LOADS], s2[A_LOADS];
#endif
  UNROLL for (int i = 0; i < A_LOADS; ++i) {
    const IDX row = row0 + a_line + i * A_STEP;
    const IDX line = row / out2, plane = line / out1, sample = plane / out0;
    const int p0 = (int)(plane - sample * out0) * stride0 - pad0;
    const int p1 = (int)(line - plane * out1) * stride1 - pad1;
    const int p2 = (int)(row - line * out2) * stride2 - pad2;
    pixel[i] = (((sample * in0 + p0) * in1 + p1) * in2 + p2) * channels;
#ifdef SEEN
    seen[i] = 0;
    if (row < rows) {
      for (int t = 0; t < kernel0; ++t)
        seen[i] |= (SEEN)((uint)(p0 + t * dilation0) < (uint)in0) << t;
      for (int t = 0; t < kernel1; ++t)
        seen[i] |= (SEEN)((uint)(p1 + t * dilation1) < (uint)in1) << (kernel0 + t);
      for (int t = 0; t < kernel2; ++t)
        seen[i] |= (SEEN)((uint)(p2 + t * dilation2) < (uint)in2) << (kernel0 + kernel1 + t);
    }
#else
    s0[i] = row < rows ? p0 : -0x40000000;  // which is outside at every tap
    s1[i] = p1;
    s2[i] = p2;
#endif
  }
#ifdef SEEN
#define TAP_BITS ((SEEN)1 << t0 | (SEEN)1 << (kernel0 + t1) | (SEEN)1 << (kernel0 + kernel1 + t2))
#define IS_SEEN(i) ((seen[i] & bits) == bits)
#else
#define IS_SEEN(i)                                                                             \
  ((uint)(s0[i] + t0 * dilation0) < (uint)in0 && (uint)(s1[i] + t1 * dilation1) < (uint)in1 && \
   (uint)(s2[i] + t2 * dilation2) < (uint)in2)
#endif
  // This work-item's place in K: a channel and a tap, and what they add to a pixel's place.
  const IDX tap = (first + a_quad) / run;
  int channel = (int)(first + a_quad - tap * run);
  int t2 = (int)(tap % kernel2), t1 = (int)(tap / kernel2 % kernel1);
  int t0 = (int)(tap / kernel2 / kernel1);
  const IDX next2 = (IDX)dilation2 * channels - run;
  const IDX next1 = ((IDX)dilation1 * in2 - (IDX)kernel2 * dilation2) * channels;
  const IDX next0 = ((IDX)dilation0 * in1 - (IDX)kernel1 * dilation1) * in2 * channels;
  IDX at = (((IDX)t0 * dilation0 * in1 + t1 * dilation1) * in2 + t2 * dilation2) * channels + channel;
#ifdef SEEN
  SEEN bits = TAP_BITS;
#define SET_BITS bits = TAP_BITS;
#else
#define SET_BITS
#endif
  IDX b_at[B_LOADS];
  UNROLL for (int i = 0; i < B_LOADS; ++i)
    b_at[i] = OPERAND_AT(B, b_, i, column0, columns, 1, first, out_channels);

  float4 a_next[A_LOADS], b_next[B_LOADS], sum[TM][COLUMN_QUADS];
  TILE_CLEAR(sum)
#define LOAD_A(p) (A_WIDE ? LOAD4(p) : some_of(p, 1, in_group - channel))
#define LOAD_B(FULL, l)                                                                             \
  UNROLL for (int i = 0; i < B_LOADS; ++i)                                                          \
    b_next[i] = OPERAND_LOAD(B, b_, FULL, filter + b_at[i], i, l, end, column0, columns, 1, out_channels);
#define LOAD_SLICE(l)                                                            \
  {                                                                              \
    const int within = (l) + a_quad < end;                                       \
    UNROLL for (int i = 0; i < A_LOADS; ++i) {                                   \
      a_next[i] = 0;                                                             \
      if (within && IS_SEEN(i)) a_next[i] = LOAD_A(x + pixel[i] + at);           \
    }                                                                            \
    if ((l) + TILE_K <= end) {                                                   \
      LOAD_B(1, l)                                                               \
    } else {                                                                     \
      LOAD_B(0, l)                                                               \
    }                                                                            \
    UNROLL for (int i = 0; i < B_LOADS; ++i) b_at[i] += TILE_K * out_channels;   \
    channel += TILE_K;                                                           \
    at += TILE_K;                                                                \
    WHEN(channel >= run) {                                                       \
      channel -= run;                                                            \
      at += next2;                                                               \
      if (++t2 == kernel2) {                                                     \
        t2 = 0;                                                                  \
        at += next1;                                                             \
        if (++t1 == kernel1) {                                                   \
          t1 = 0;                                                                \
          at += next0;                                                           \
          ++t0;                                                                  \
        }                                                                        \
      }                                                                          \
      SET_BITS                                                                   \
    }                                                                            \
  }

  LOAD_SLICE(first)
  TILE_STORE(tile)
  barrier(CLK_LOCAL_MEM_FENCE);
  int buffer = 0;
  for (IDX l = first + TILE_K;; l += TILE_K) {
    const int more = l < end;
    if (more) {
      LOAD_SLICE(l)
    }
    TILE_MULTIPLY(sum, tile + buffer)
    if (!more) break;
    buffer = STAGE - buffer;
    TILE_STORE(tile + buffer)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  TILE_FINISH(sum)
}
