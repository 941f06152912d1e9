// integer_tiled: ConvInteger of bytes as a product by tiles (common/byte_tile.clh). Rows are output
// pixels, columns the output channels of a filter group, and K goes over the taps and, in each, the
// group's channels rounded up to a multiple of 4 (run). The filter is packed by
// matmul/integer_pack.cl, its groups `group_step` words apart. A is gathered by words of four
// neighbours in K (common/gather.clh); what lies outside of x, and channels beyond a group's last, are
// x's zero point. A_WIDE: channels and those of a group are multiples of 4. z counts the filter groups.
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DA_ZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DA_ZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=2 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=8 -DUNROLL_K=8 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=8 -DTN=8 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=4 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DIDX=int -DTM=4 -DTN=4 -DWARPS_M=1 -DWARPS_N=2 -DLANES_M=8 -DTILE_K=16 -DUNROLL_K=16 -DSEEN=uint -DNARROW=0 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX -DDOT_PTX
#include "common/byte_tile.clh"
#include "common/gather.clh"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void integer_tiled(
    __global const MEM(X)* restrict x, __global const uint* restrict filter, INTEGER_PARAMS,
    const IDX column_tiles, const IDX rows, const IDX columns, const IDX k, const IDX group_step,
    const int run, const int channels, const int out_channels, const int in_group,
    WINDOW_PARAMS EPILOGUE_PARAMS) {
  TILE_MEMORY
  BYTE_TILE_IDS
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, z = get_group_id(1);
  const IDX row0 = row_tile * TILE_M;
  const IDX column0 = ((IDX)get_group_id(0) - row_tile * column_tiles) * TILE_N;
  const IDX words = k / 4, pitch = (columns + 3) / 4 * 4;
#if PART
  const IDX group = z / part_count, first = (z - group * part_count) * part_words;
  const IDX end = min(words, first + part_words);
#else
  const IDX group = z, first = 0, end = words;
  const IDX y0 = group * columns, y_row = out_channels, bias0 = y0;
#endif
  const uint outside = (uint)(uchar)A_MOVED(0) * 0x01010101u;
  x += group * in_group;
  filter += group * group_step;
  __global const int* b_sums = (__global const int*)filter;
  filter += pitch;

  GATHER_ROWS
  GATHER_FROM((first + a_word) * 4)
  IDX b_at[B_LOADS];
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
  {                                                                                                \
    const int within = (l) + a_word < end;                                                         \
    UNROLL for (int i = 0; i < A_LOADS; ++i) {                                                     \
      a_next[i] = within ? outside : 0;                                                            \
      if (within && IS_SEEN(i)) a_next[i] = WORD_OF(x + pixel[i] + at, in_group - channel, outside); \
    }                                                                                              \
    UNROLL for (int i = 0; i < B_LOADS; ++i) {                                                     \
      b_next[i] = (l) + b_line + i * B_STEP < end ?   *(__global const uint4*)(filter + b_at[i])   \
                                                    : (uint4)0;                                    \
      b_at[i] += TILE_K * pitch;                                                                   \
    }                                                                                              \
    GATHER_STEP(TILE_K * 4)                                                                        \
  }

  TILE_PRODUCT(first, end, BYTE_STORE, BYTE_MULTIPLY)
  BYTE_FINISH(sum)
}
