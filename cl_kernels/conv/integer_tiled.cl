// integer_tiled: ConvInteger of bytes as a product by tiles (common/byte_tile.clh). Rows are output
// pixels, columns the output channels of a filter group, and K goes over the taps and, in each, the
// group's channels rounded up to a multiple of 4 (run). The filter is packed by
// matmul/integer_pack.cl, its groups `group_step` words apart. A is gathered from x as conv/tiled.cl
// does it, by words in place of quads; what lies outside of x, and channels beyond a group's last, are x's
// zero point. A_WIDE: channels and those of a group are multiples of 4. SEEN and NARROW (run < 4 TILE_K) are as
// there. z counts the filter groups.
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO
#include "common/byte_tile.clh"
#include "common/window.clh"
#if NARROW
#define WHEN while
#else
#define WHEN if
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void integer_tiled(
    __global const MEM(X)* restrict x, __global const uint* restrict filter, INTEGER_PARAMS,
    const IDX column_tiles, const IDX rows, const IDX columns, const IDX k, const IDX group_step,
    const int run, const int channels, const int out_channels, const int in_group,
    WINDOW_PARAMS EPILOGUE_PARAMS) {
  __local uint tile[2 * STAGE] __attribute__((aligned(16)));
  BYTE_TILE_IDS
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, group = get_group_id(1);
  const IDX row0 = row_tile * TILE_M;
  const IDX column0 = ((IDX)get_group_id(0) - row_tile * column_tiles) * TILE_N;
  const IDX words = k / 4, pitch = (columns + 3) / 4 * 4;
  const IDX y0 = group * columns, y_row = out_channels, bias0 = y0;
  const uint outside = (uint)(uchar)A_MOVED(0) * 0x01010101u;
  x += group * in_group;
  filter += group * group_step;
  __global const int* b_sums = (__global const int*)filter;
  filter += pitch;

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
  const IDX tap = a_word * 4 / run;
  int channel = (int)(a_word * 4 - tap * run);
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
    b_at[i] = (b_line + i * B_STEP) * pitch + min(column0 + b_quad, pitch - 4);

  uint a_next[A_LOADS];
  uint4 b_next[B_LOADS];
  int4 sum[TM][COLUMN_QUADS];
  TILE_CLEAR(sum)
#if ROW_SUMS
  int row_sum[TM];
  UNROLL for (int i = 0; i < TM; ++i) row_sum[i] = 0;
#endif
#define LOAD_SLICE(l)                                                                              \
  {                                                                                                \
    const int within = (l) + a_word < words;                                                       \
    UNROLL for (int i = 0; i < A_LOADS; ++i) {                                                     \
      a_next[i] = within ? outside : 0;                                                            \
      if (within && IS_SEEN(i)) a_next[i] = WORD_OF(x + pixel[i] + at, in_group - channel, outside); \
    }                                                                                              \
    UNROLL for (int i = 0; i < B_LOADS; ++i) {                                                     \
      b_next[i] = (l) + b_line + i * B_STEP < words ? *(__global const uint4*)(filter + b_at[i])   \
                                                    : (uint4)0;                                    \
      b_at[i] += TILE_K * pitch;                                                                   \
    }                                                                                              \
    channel += TILE_K * 4;                                                                         \
    at += TILE_K * 4;                                                                              \
    WHEN(channel >= run) {                                                                         \
      channel -= run;                                                                              \
      at += next2;                                                                                 \
      if (++t2 == kernel2) {                                                                       \
        t2 = 0;                                                                                    \
        at += next1;                                                                               \
        if (++t1 == kernel1) {                                                                     \
          t1 = 0;                                                                                  \
          at += next0;                                                                             \
          ++t0;                                                                                    \
        }                                                                                          \
      }                                                                                            \
      SET_BITS                                                                                     \
    }                                                                                              \
  }

  LOAD_SLICE(0)
  BYTE_STORE(tile)
  barrier(CLK_LOCAL_MEM_FENCE);
  int buffer = 0;
  for (IDX l = TILE_K;; l += TILE_K) {
    const int more = l < words;
    if (more) {
      LOAD_SLICE(l)
    }
    BYTE_MULTIPLY(sum, tile + buffer)
    if (!more) break;
    buffer = STAGE - buffer;
    BYTE_STORE(tile + buffer)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  BYTE_FINISH(sum)
}
