// registers: Conv out of registers alone (common/register_tile.clh), for GPUs whose local memory is
// no faster than their caches. Rows are output pixels, columns the output channels of a filter
// group; the filter is [tap][run][out_channels] as in tiled.cl. T is f32, f16 or bf16; sums are in
// float, in the order of K. A_WIDE: channels and those of a group are multiples of 4; B_WIDE,
// Y_WIDE: output channels of a group are. Work-item (8 columns, 4 pixels, group), in groups of GX x
// GY.
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DGX=4 -DGY=4 -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_none -DGX=4 -DGY=16 -DA_WIDE=0 -DB_WIDE=1 -DY_WIDE=1 -DBIAS -DRESIDUAL
// VARIANT: -DT=bf16 -DIDX=long -DACTIVATION=ACT_gelu -DGX=4 -DGY=4 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0
#include "common/register_tile.clh"
#include "common/window.clh"

__kernel __attribute__((reqd_work_group_size(GX, GY, 1))) void registers(
    __global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y, const IDX rows, const IDX columns, const int run,
    const int channels, const int out_channels, const int in_group, WINDOW_PARAMS) {
  const IDX column0 = (IDX)get_global_id(0) * 8, row0 = (IDX)get_global_id(1) * 4;
  if (row0 >= rows || column0 >= columns) return;
  const IDX group = get_global_id(2);
  const IDX y0 = group * columns, y_row = out_channels, bias0 = y0;
  x += group * in_group;
  filter += group * columns;
  IDX pixel[4];
  int s0[4], s1[4], s2[4];
  UNROLL for (int i = 0; i < 4; ++i) {
    const IDX row = min(row0 + i, rows - 1);
    const IDX line = row / out2, plane = line / out1, sample = plane / out0;
    s0[i] = (int)(plane - sample * out0) * stride0 - pad0;
    s1[i] = (int)(line - plane * out1) * stride1 - pad1;
    s2[i] = (int)(row - line * out2) * stride2 - pad2;
    pixel[i] = (((sample * in0 + s0[i]) * in1 + s1[i]) * in2 + s2[i]) * channels;
  }
  float4 sum[4][2], u[4];
  REGISTERS_CLEAR(sum)
  for (int t0 = 0; t0 < kernel0; ++t0) {
    for (int t1 = 0; t1 < kernel1; ++t1) {
      for (int t2 = 0; t2 < kernel2; ++t2) {
        const int d0_ = t0 * dilation0, d1_ = t1 * dilation1, d2_ = t2 * dilation2;
        const IDX at = (((IDX)d0_ * in1 + d1_) * in2 + d2_) * channels;
        __global const MEM(T)* w =
            filter + (((IDX)t0 * kernel1 + t1) * kernel2 + t2) * run * out_channels;
        int inside[4];
        UNROLL for (int i = 0; i < 4; ++i)
          inside[i] = (uint)(s0[i] + d0_) < (uint)in0 && (uint)(s1[i] + d1_) < (uint)in1 &&
                      (uint)(s2[i] + d2_) < (uint)in2;
        for (int c = 0; c < in_group; c += 4) {
          UNROLL for (int i = 0; i < 4; ++i) {
            u[i] = 0;
            if (inside[i]) {
              __global const MEM(T)* p = x + pixel[i] + at + c;
              u[i] = A_WIDE ? LOAD4(p) : some_of(p, 1, in_group - c);
            }
          }
          REGISTERS_MULTIPLY(sum, u, w + (IDX)c * out_channels, out_channels, 1,
                             A_WIDE ? 4 : in_group - c)
        }
      }
    }
  }
  REGISTERS_FINISH(sum)
}
