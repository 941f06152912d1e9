// registers: Conv out of registers alone (common/register_tile.clh), for GPUs whose local memory is
// no faster than their caches. Rows are output pixels, columns the output channels of a filter
// group; the filter is [tap][run][out_channels] as in tiled.cl. T is f32, f16 or bf16; sums are in
// float, in the order of K. A_WIDE: channels and those of a group are multiples of 4; B_WIDE,
// Y_WIDE: output channels of a group are. Work-item (QUADS quads of columns, 4 pixels, group), in groups of GX x
// GY.
// SEEN: a type of as many bits as the kernel has along its three axes together, if there is one.
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DGX=4 -DGY=4 -DQUADS=2 -DSEEN=uint -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_relu -DGX=4 -DGY=4 -DQUADS=1 -DSEEN=uint -DA_WIDE=1 -DB_WIDE=1 -DY_WIDE=1 -DBIAS
// VARIANT: -DT=f16 -DIDX=int -DACTIVATION=ACT_none -DGX=4 -DGY=16 -DQUADS=2 -DSEEN=uint -DA_WIDE=0 -DB_WIDE=1 -DY_WIDE=1 -DBIAS -DRESIDUAL
// VARIANT: -DT=bf16 -DIDX=long -DACTIVATION=ACT_gelu -DGX=4 -DGY=4 -DQUADS=2 -DA_WIDE=0 -DB_WIDE=0 -DY_WIDE=0
#include "common/register_tile.clh"
#include "common/window.clh"
#define SEES(i, size) ((uint)(i) < (uint)(size))

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
  const IDX column0 = (IDX)get_global_id(0) * (4 * QUADS), row0 = (IDX)get_global_id(1) * 4;
  if (row0 >= rows || column0 >= columns) return;
  const IDX group = get_global_id(2);
  const IDX y0 = group * columns, y_row = out_channels, bias0 = y0;
  x += group * in_group;
  filter += group * columns;
  IDX pixel[4];
#ifdef SEEN
  // Which taps of each axis see the input, one bit each: those of axis 2 first.
  SEEN seen[4];
#else
  int first0[4], first1[4], first2[4];
#endif
  UNROLL for (int i = 0; i < 4; ++i) {
    const IDX row = min(row0 + i, rows - 1);
    const IDX line = row / out2, plane = line / out1, sample = plane / out0;
    const int s0 = (int)(plane - sample * out0) * stride0 - pad0;
    const int s1 = (int)(line - plane * out1) * stride1 - pad1;
    const int s2 = (int)(row - line * out2) * stride2 - pad2;
    pixel[i] = (((sample * in0 + s0) * in1 + s1) * in2 + s2) * channels;
#ifdef SEEN
    seen[i] = 0;
    for (int t = 0; t < kernel2; ++t) seen[i] |= (SEEN)SEES(s2 + t * dilation2, in2) << t;
    for (int t = 0; t < kernel1; ++t) seen[i] |= (SEEN)SEES(s1 + t * dilation1, in1) << (kernel2 + t);
    for (int t = 0; t < kernel0; ++t) {
      seen[i] |= (SEEN)SEES(s0 + t * dilation0, in0) << (kernel2 + kernel1 + t);
    }
#else
    first0[i] = s0;
    first1[i] = s1;
    first2[i] = s2;
#endif
  }
  float4 sum[4][QUADS], u[4];
  REGISTERS_CLEAR(sum)
  for (int t0 = 0; t0 < kernel0; ++t0) {
    for (int t1 = 0; t1 < kernel1; ++t1) {
      for (int t2 = 0; t2 < kernel2; ++t2) {
        const int d0_ = t0 * dilation0, d1_ = t1 * dilation1, d2_ = t2 * dilation2;
        const IDX at = (((IDX)d0_ * in1 + d1_) * in2 + d2_) * channels;
        __global const MEM(T)* w =
            filter + (((IDX)t0 * kernel1 + t1) * kernel2 + t2) * run * out_channels;
#ifdef SEEN
        const SEEN taps = (SEEN)1 << t2 | (SEEN)1 << (kernel2 + t1) | (SEEN)1 << (kernel2 + kernel1 + t0);
#define INSIDE(i) ((seen[i] & taps) == taps)
#else
#define INSIDE(i) \
  (SEES(first0[i] + d0_, in0) && SEES(first1[i] + d1_, in1) && SEES(first2[i] + d2_, in2))
#endif
        for (int c = 0; c < in_group; c += 4) {
          UNROLL for (int i = 0; i < 4; ++i) {
            u[i] = 0;
            if (INSIDE(i)) {
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
