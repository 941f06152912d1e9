// Packs matrices of bytes b[matrix][tap][row][column] (any steps of rows and columns; taps follow one
// another) for products of integers. The engine packs constants in the same way.
//
// words, for tiles: uint[matrix][1 + taps * words of a tap][columns rounded up to a multiple of 4]. Each word
// is four rows of a tap as signed bytes, those of u8 less 128, with zeros beyond the last row and column;
// before the words of a matrix stand the sums of its columns. One work-item per column of a matrix.
// panels, for panels of PANEL columns: bytes as they are, [matrix][panel][tap][row][PANEL], the last panel
// filled with zeros. One work-item per row of a panel.
// VARIANT: -DW=i8 -DIDX=int -DPANEL=32
// VARIANT: -DW=u8 -DIDX=int -DPANEL=1
// VARIANT: -DW=u8 -DIDX=long -DPANEL=8
#include "common/dtype.clh"
#define SIGN_i8 0
#define SIGN_u8 0x80

__kernel void words(__global const MEM(W)* restrict b, __global uint* restrict packed, const IDX columns,
                    const IDX taps, const IDX rows, const IDX b_row, const IDX b_col,
                    const IDX b_matrix) {
  const IDX column = get_global_id(0), matrix = get_global_id(1), pitch = (columns + 3) / 4 * 4;
  if (column >= pitch) return;
  const IDX tap_words = (rows + 3) / 4;
  __global const MEM(W)* from = b + matrix * b_matrix + column * b_col;
  __global uint* to = packed + matrix * (1 + taps * tap_words) * pitch + column;
  uint sum = 0;
  for (IDX tap = 0; tap < taps; ++tap) {
    for (IDX q = 0; q < tap_words; ++q) {
      uint word = 0;
      for (int e = 0; e < 4; ++e) {
        const IDX row = q * 4 + e;
        if (column >= columns || row >= rows) continue;
        const uint byte = (uint)(uchar)from[(tap * rows + row) * b_row] ^ CAT(SIGN_, W);
        sum += (uint)(int)(char)(uchar)byte;
        word |= byte << (8 * e);
      }
      to[(1 + tap * tap_words + q) * pitch] = word;
    }
  }
  to[0] = sum;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void panels(
    __global const MEM(W)* restrict b, __global MEM(W)* restrict packed, const IDX columns,
    const IDX rows, const IDX b_row, const IDX b_col, const IDX b_matrix) {
  const IDX row = get_global_id(0), panel = get_global_id(1), matrix = get_global_id(2);
  __global const MEM(W)* from = b + matrix * b_matrix + row * b_row + panel * PANEL * b_col;
  __global MEM(W)* to = packed + ((matrix * get_global_size(1) + panel) * rows + row) * PANEL;
  const IDX count = columns - panel * PANEL;
  for (IDX j = 0; j < PANEL; ++j) to[j] = j < count ? from[j * b_col] : 0;
}
