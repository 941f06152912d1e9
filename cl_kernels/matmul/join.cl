// join: y = activation(sum of the parts + bias + residual), the parts in their order, so that the
// result is the same on every run. Parts are float[product][part][rows][columns rounded up to a
// multiple of 4]; column (of `columns` per group) and row of y are as in conv/tiled.cl. One
// work-item per quad of columns.
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_none -DY_WIDE=1
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_relu -DY_WIDE=1 -DBIAS -DRESIDUAL
// VARIANT: -DT=bf16 -DIDX=long -DACTIVATION=ACT_gelu -DY_WIDE=0 -DBIAS -DRESIDUAL
#include "common/finish.clh"

__kernel void join(__global const float* restrict parts,
#ifdef BIAS
                   __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
                   __global const MEM(T)* restrict residual,
#endif
                   __global MEM(T)* restrict y, const IDX quads, const IDX part_count,
                   const IDX rows, const IDX columns, const IDX y_step, const IDX y_row,
                   const IDX bias_step) {
  const IDX i = get_global_id(0);
  if (i >= quads) return;
  const IDX row_quads = (columns + 3) / 4, column = i % row_quads * 4;
  const IDX row = i / row_quads % rows, product = i / row_quads / rows;
  const IDX step = rows * row_quads;
  __global const float4* part = (__global const float4*)parts + product * part_count * step +
                                row * row_quads + column / 4;
  float4 sum = *part;
  // Eight reads under way at once.
  for (IDX p = 1; p < part_count; p += 8) {
    float4 some[8];
    UNROLL for (int j = 0; j < 8; ++j) {
      if (p + j < part_count) some[j] = part[(p + j) * step];
    }
    UNROLL for (int j = 0; j < 8; ++j) {
      if (p + j < part_count) sum += some[j];
    }
  }
  FINISH(sum, columns - column, product * y_step + row * y_row + column, product * bias_step + column)
}
