// tiled: Conv as a product by tiles (common/tile.clh), sums in float, each in the order of K
// whatever the tile; T is f32, f16 or bf16. Rows are output pixels, columns the output channels of
// a filter group, and K goes over the taps and, in each, the group's channels rounded up to a
// multiple of 4 (run): the filter is [tap][run][out_channels]. A is gathered by quads of K
// (common/gather.clh). A_WIDE: channels and those of a group are multiples of 4. PART, part_count
// and part_k are as in matmul/tiled.cl, z counts the filter groups.
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
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=bf16 -DIDX=int -DACTIVATION=ACT_gelu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DNARROW=1 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_none -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=1 -DMATRIX -DMATRIX_PTX
#define A_ALONG 1
#define B_ALONG 0
#include "common/tile.clh"
#include "common/gather.clh"

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
  TILE_MEMORY
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

  GATHER_ROWS
  GATHER_FROM(first + a_quad)
  IDX b_at[B_LOADS];
  UNROLL for (int i = 0; i < B_LOADS; ++i)
    b_at[i] = OPERAND_AT(B, b_, i, column0, columns, 1, first, out_channels);

  LOADED a_next[A_LOADS], b_next[B_LOADS];
  float4 sum[TM][COLUMN_QUADS];
  TILE_CLEAR(sum)
#define LOAD_A(p) (A_WIDE ? LOAD_QUAD(p) : LOAD_SOME(p, 1, in_group - channel))
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
    GATHER_STEP(TILE_K)                                                          \
  }

  TILE_PRODUCT(first, end, TILE_STORE, TILE_MULTIPLY)
  TILE_FINISH(sum)
}
