// integer_join: sums of parts of products of bytes, int[product][part][rows][columns rounded up to a multiple
// of 4], added up, with bias, as results. Column (of `columns` per group) and row of y are as in
// conv/integer_tiled.cl. One work-item per quad of columns. Y_WIDE: columns are a multiple of four.
// VARIANT: -DY=u8 -DIDX=int -DY_WIDE=1 -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DY=i32 -DIDX=long -DY_WIDE=0
// VARIANT: -DY=i8 -DIDX=int -DY_WIDE=0 -DBIAS -DREQUANTIZED -DFIXED
// VARIANT: -DY=i32 -DIDX=int -DY_WIDE=1 -DBIAS -DREQUANTIZED -DREAL -DTERM
#include "common/integer_product.clh"

__kernel void integer_join(__global const int* restrict parts, BIAS_PARAM __global MEM(Y)* restrict y,
                           const IDX quads, const IDX part_count, const IDX rows, const IDX columns,
                           const IDX y_step, const IDX y_row, const IDX bias_step EPILOGUE_PARAMS) {
  const IDX i = get_global_id(0);
  if (i >= quads) return;
  const IDX row_quads = (columns + 3) / 4, column = i % row_quads * 4;
  const IDX row = i / row_quads % rows, product = i / row_quads / rows;
  const IDX step = rows * row_quads;
  __global const uint4* part = (__global const uint4*)parts + product * part_count * step +
                               row * row_quads + column / 4;
  uint4 sum = 0;
  for (IDX p = 0; p < part_count; ++p) sum += part[p * step];
  const IDX count = min((IDX)4, columns - column), first = product * bias_step + column;
  const uint sums[4] = {sum.x, sum.y, sum.z, sum.w};
  MEM4(Y) four;
  _Pragma("unroll") for (int e = 0; e < 4; ++e) {
    const IDX c = first + min((IDX)e, count - 1);
    STORE(Y, (MEM(Y)*)&four, e, EPILOGUE((int)(sums[e] + (uint)BIAS_AT(c)), c));
  }
  __global MEM(Y)* to = y + product * y_step + row * y_row + column;
#if Y_WIDE
  *(__global MEM4(Y)*)to = four;
#else
  for (int e = 0; e < count; ++e) to[e] = ((const MEM(Y)*)&four)[e];
#endif
}
