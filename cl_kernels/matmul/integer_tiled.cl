// integer_tiled: the product of matmul/integer.cl in bytes, by tiles (common/byte_tile.clh). Rows of a
// are neighbours in K; b is packed by integer_pack.cl, its matrices apart by the batch's steps. Group
// (tile of rows * column_tiles + tile of columns, z). PART: group z has part z % part_count of product
// z / part_count, of part_words words.
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DA_ZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DA_ZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DAXES=0 -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DIDX=int -DAXES=0 -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DREAL -DTERM
#include "common/batch.clh"
#include "common/byte_tile.clh"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void integer_tiled(
    __global const MEM(X)* restrict a, __global const uint* restrict b, INTEGER_PARAMS,
    const IDX column_tiles, const IDX rows, const IDX columns, const IDX k,
    const IDX a_row BATCH_PARAMS EPILOGUE_PARAMS) {
  TILE_MEMORY
  BYTE_TILE_IDS
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, z = get_group_id(1);
  const IDX row0 = row_tile * TILE_M;
  const IDX column0 = ((IDX)get_group_id(0) - row_tile * column_tiles) * TILE_N;
  const IDX words = (k + 3) / 4, pitch = (columns + 3) / 4 * 4;
#if PART
  const IDX first = z % part_count * part_words, end = min(words, first + part_words);
  IDX product = z / part_count, a0 = 0, b0 = 0;
#else
  const IDX first = 0, end = words, y0 = z * rows * columns, y_row = columns, bias0 = 0;
  IDX product = z, a0 = 0, b0 = 0;
#endif
  BATCH_OFFSETS(product, a0, b0)
  a += a0;
  b += b0;
  __global const int* b_sums = (__global const int*)b;
  b += pitch;
  IDX a_at[A_LOADS], b_at[B_LOADS];
  UNROLL for (int i = 0; i < A_LOADS; ++i)
    a_at[i] = min(row0 + a_line + i * A_STEP, rows - 1) * a_row + (first + a_word) * 4;
  UNROLL for (int i = 0; i < B_LOADS; ++i)
    b_at[i] = (first + b_line + i * B_STEP) * pitch + min(column0 + b_quad, pitch - 4);

  uint a_next[A_LOADS];
  uint4 b_next[B_LOADS];
  int4 sum[TM][COLUMN_QUADS];
  TILE_CLEAR(sum)
#if ROW_SUMS
  int row_sum[TM];
  UNROLL for (int i = 0; i < TM; ++i) row_sum[i] = 0;
#endif
#define LOAD_SLICE(l)                                                                              \
  UNROLL for (int i = 0; i < A_LOADS; ++i) {                                                       \
    a_next[i] = (l) + a_word < end ? WORD_OF(a + a_at[i], k - ((l) + a_word) * 4, 0) : 0;        \
    a_at[i] += TILE_K * 4;                                                                         \
  }                                                                                                \
  UNROLL for (int i = 0; i < B_LOADS; ++i) {                                                       \
    b_next[i] = (l) + b_line + i * B_STEP < end ? *(__global const uint4*)(b + b_at[i]) : (uint4)0; \
    b_at[i] += TILE_K * pitch;                                                                     \
  }

  TILE_PRODUCT(first, end, BYTE_STORE, BYTE_MULTIPLY)
  BYTE_FINISH(sum)
}
