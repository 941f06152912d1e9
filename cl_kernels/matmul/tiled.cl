// tiled: y[z] = activation(a[z] b[z] + bias + residual) by tiles (common/tile.clh), sums in float,
// each in the order of K whatever the tile. T is f32, f16 or bf16 (those of MATRIX, 16 k's at a time); a is m x k and b k x n, with any
// steps. Group (tile of rows * column_tiles + tile of columns, z). PART: group z has part z %
// part_count of product z / part_count, of part_k k's, a multiple of TILE_K, and `parts` gets its
// sums, as float[z][m][n rounded up to a multiple of 4], which join.cl adds up.
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=int -DAXES=1 -DACTIVATION=ACT_none -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=1 -DB_WIDE=1 -DY_WIDE=1 -DPART=0
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=1
// VARIANT: -DT=bf16 -DIDX=long -DAXES=2 -DACTIVATION=ACT_gelu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=0 -DA_WIDE=0 -DB_ALONG=1 -DB_WIDE=0 -DY_WIDE=0 -DPART=0 -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_gelu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=0 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=long -DAXES=6 -DACTIVATION=ACT_none -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=2 -DA_ALONG=1 -DA_WIDE=0 -DB_ALONG=0 -DB_WIDE=0 -DY_WIDE=0 -DPART=1
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=4 -DWARPS_M=1 -DWARPS_N=1 -DLANES_M=4 -DTILE_K=16 -DUNROLL_K=4 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=bf16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_gelu -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_ALONG=0 -DA_WIDE=0 -DB_ALONG=1 -DB_WIDE=0 -DY_WIDE=0 -DPART=0 -DBIAS -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=32 -DUNROLL_K=16 -DA_ALONG=1 -DA_WIDE=1 -DB_ALONG=0 -DB_WIDE=1 -DY_WIDE=1 -DPART=1 -DMATRIX -DMATRIX_PTX
#include "common/batch.clh"
#include "common/tile.clh"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void tiled(
    __global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
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
    const IDX column_tiles, const IDX rows, const IDX columns, const IDX k, const IDX a_row,
    const IDX a_col, const IDX b_row, const IDX b_col BATCH_PARAMS) {
  TILE_MEMORY
  TILE_IDS
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, z = get_group_id(1);
  const IDX row0 = row_tile * TILE_M;
  const IDX column0 = ((IDX)get_group_id(0) - row_tile * column_tiles) * TILE_N;
#if PART
  const IDX first = z % part_count * part_k, end = min(k, first + part_k);
  IDX product = z / part_count;
#else
  const IDX first = 0, end = k, y0 = z * rows * columns, y_row = columns, bias0 = 0;
  IDX product = z;
#endif
  IDX a0 = 0, b0 = 0;
  BATCH_OFFSETS(product, a0, b0)
  a += a0;
  b += b0;
  // What is one is said to the compiler.
  const IDX a_line_step = A_WIDE > A_ALONG ? 1 : a_row, a_k_step = A_WIDE & A_ALONG ? 1 : a_col;
  const IDX b_line_step = B_WIDE > B_ALONG ? 1 : b_col, b_k_step = B_WIDE & B_ALONG ? 1 : b_row;
  IDX a_at[A_LOADS], b_at[B_LOADS];
  UNROLL for (int i = 0; i < A_LOADS; ++i)
    a_at[i] = OPERAND_AT(A, a_, i, row0, rows, a_line_step, first, a_k_step);
  UNROLL for (int i = 0; i < B_LOADS; ++i)
    b_at[i] = OPERAND_AT(B, b_, i, column0, columns, b_line_step, first, b_k_step);

  LOADED a_next[A_LOADS], b_next[B_LOADS];
  float4 sum[TM][COLUMN_QUADS];
  TILE_CLEAR(sum)
#define LOAD_LOADS(X, x_, FULL, p, at, l, from, lines, line_step, k_step)                          \
  UNROLL for (int i = 0; i < X##_LOADS; ++i)                                                       \
    x_##next[i] = OPERAND_LOAD(X, x_, FULL, p + at[i], i, l, end, from, lines, line_step, k_step);
// Only the last slice may be short, and it is for the whole group: no test stands in the others.
#define LOAD_SLICE(l)                                                        \
  if ((l) + TILE_K <= end) {                                                 \
    LOAD_LOADS(A, a_, 1, a, a_at, l, row0, rows, a_line_step, a_k_step)       \
    LOAD_LOADS(B, b_, 1, b, b_at, l, column0, columns, b_line_step, b_k_step) \
  } else {                                                                   \
    LOAD_LOADS(A, a_, 0, a, a_at, l, row0, rows, a_line_step, a_k_step)       \
    LOAD_LOADS(B, b_, 0, b, b_at, l, column0, columns, b_line_step, b_k_step) \
  }                                                                          \
  UNROLL for (int i = 0; i < A_LOADS; ++i) a_at[i] += TILE_K * a_k_step;        \
  UNROLL for (int i = 0; i < B_LOADS; ++i) b_at[i] += TILE_K * b_k_step;

  TILE_PRODUCT(first, end, TILE_STORE, TILE_MULTIPLY)
  TILE_FINISH(sum)
}
