// registers: y[z] = activation(a[z] b[z] + bias + residual) out of registers alone, for GPUs whose
// local memory is no faster than their caches. A work-item has 4 rows of QUADS (1 or 2)
// quads of columns: with two it brings, for every 4 k, 4 quads of a and 8 of b for 128 multiply-adds. T is f32, f16 or
// bf16; sums are in float, in the order of K. A_WIDE: neighbours in K lie together in a, and k and
// a's steps are multiples of 4; B_WIDE: neighbouring columns lie together in b, and columns and b's
// steps are multiples of 4. Otherwise elements are read one by one. Work-item (QUADS quads of columns, 4 rows,
// z), in groups of GX x GY.
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DGX=4 -DGY=4 -DQUADS=2 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DGX=4 -DGY=4 -DQUADS=1 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DAXES=1 -DACTIVATION=ACT_none -DGX=4 -DGY=16 -DQUADS=2 -DA_WIDE=1 -DB_WIDE=0 -DY_WIDE=1
// VARIANT: -DT=bf16 -DIDX=long -DAXES=2 -DACTIVATION=ACT_gelu -DGX=4 -DGY=4 -DQUADS=2 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0 -DBIAS -DRESIDUAL
#include "common/batch.clh"
#include "common/register_tile.clh"

__kernel __attribute__((reqd_work_group_size(GX, GY, 1))) void registers(
    __global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y, const IDX rows, const IDX columns, const IDX k, const IDX a_row,
    const IDX a_col, const IDX b_row, const IDX b_col BATCH_PARAMS) {
  const IDX column0 = (IDX)get_global_id(0) * (4 * QUADS), row0 = (IDX)get_global_id(1) * 4;
  if (row0 >= rows || column0 >= columns) return;
  IDX z = get_global_id(2), a0 = 0, b0 = 0;
  const IDX y0 = z * rows * columns, y_row = columns, bias0 = 0;
  BATCH_OFFSETS(z, a0, b0)
  __global const MEM(T)* from[4];
  UNROLL for (int i = 0; i < 4; ++i) from[i] = a + a0 + min(row0 + i, rows - 1) * a_row;
  b += b0;
  float4 sum[4][QUADS], u[4];
  REGISTERS_CLEAR(sum)
  for (IDX l = 0; l < k; l += 4) {
    UNROLL for (int i = 0; i < 4; ++i)
      u[i] = A_WIDE ? LOAD4(from[i] + l) : some_of(from[i] + l * a_col, a_col, k - l);
    REGISTERS_MULTIPLY(sum, u, b + l * b_row, b_row, b_col, A_WIDE ? 4 : k - l)
  }
  REGISTERS_FINISH(sum)
}
