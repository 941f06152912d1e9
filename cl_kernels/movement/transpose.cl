// transpose_tiles, transpose_blocks: a strided box of which axis `across` (size m) is contiguous in
// x and axis `along` (size n) is contiguous in y. AXES more axes are gone through by global axis 2.
// Both move tiles of TILE x TILE, so that x and y are touched in whole lines: transpose_tiles with
// one work-group of TILE x ROWS per tile and local memory, transpose_blocks with one work-item per
// tile.
// VARIANT: -DT=uint -DI=int -DAXES=0 -DTILE=32 -DROWS=8
// VARIANT: -DT=uint -DI=int -DAXES=0 -DTILE=16 -DROWS=8
// VARIANT: -DT=uchar -DI=long -DAXES=3 -DTILE=16 -DROWS=4
#include "common/axes.clh"

#define PARAMS(i) const I n##i, const I f##i, const I t##i,
#define PLACE(i) { const I a = r % n##i; r /= n##i; from += a * f##i; to += a * t##i; }

__kernel void transpose_tiles(__global const T* restrict x, __global T* restrict y, const I m,
                              const I m_to, const I n, const I n_from, EACH(AXES, PARAMS)
                              const long x_start, const long y_start, const long x_offset,
                              const long y_offset) {
  // One column more than needed keeps the columns in different banks.
  __local T tile[TILE][TILE + 1];
  long from = x_offset + x_start, to = y_offset + y_start;
  I r = get_global_id(2);
  (void)r;
  EACH(AXES, PLACE)
  const I i0 = get_group_id(0) * TILE, j0 = get_group_id(1) * TILE;
  const int column = get_local_id(0);
  for (int row = get_local_id(1); row < TILE; row += ROWS) {
    const I i = i0 + column, j = j0 + row;
    if (i < m && j < n) tile[row][column] = x[from + i + j * n_from];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int row = get_local_id(1); row < TILE; row += ROWS) {
    const I i = i0 + row, j = j0 + column;
    if (i < m && j < n) y[to + i * m_to + j] = tile[column][row];
  }
}

__kernel void transpose_blocks(__global const T* restrict x, __global T* restrict y, const I m,
                               const I m_to, const I n, const I n_from, EACH(AXES, PARAMS)
                               const long x_start, const long y_start, const long x_offset,
                               const long y_offset) {
  long from = x_offset + x_start, to = y_offset + y_start;
  I r = get_global_id(2);
  (void)r;
  EACH(AXES, PLACE)
  const I i0 = (I)get_global_id(0) * TILE, j0 = (I)get_global_id(1) * TILE;
  const I i1 = min(i0 + TILE, m), j1 = min(j0 + TILE, n);
  for (I i = i0; i < i1; ++i) {
    for (I j = j0; j < j1; ++j) y[to + i * m_to + j] = x[from + i + j * n_from];
  }
}
