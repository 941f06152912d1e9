// tiled: Conv as a product by tiles in local memory, sums in float; T is f32, f16 or bf16. Rows are
// output pixels, columns the output channels of group z, K runs over taps and the group's channels
// in the order of the filter. Work-group (tile of rows, tile of columns, z). A slice of A is gathered
// from the input as it stands: each work-item looks after one K of a slice, so that it takes K apart
// once for all its rows. THREADS is a multiple of TILE_K; `memory` holds TILE_K * (A_PITCH + B_PITCH)
// floats.
// VARIANT: -DT=f32 -DIDX=int -DACTIVATION=ACT_none -DTX=16 -DTY=16 -DWM=4 -DWN=4 -DTILE_K=16
// VARIANT: -DT=f16 -DIDX=long -DACTIVATION=ACT_relu6 -DTX=8 -DTY=8 -DWM=2 -DWN=2 -DTILE_K=8 -DBIAS -DRESIDUAL
#include "common/dtype.clh"
#include "common/activation.clh"
#include "common/tile.clh"
#include "common/window.clh"
#define GATHERED (TILE_M * TILE_K / THREADS)  // rows that a work-item gathers

__kernel __attribute__((reqd_work_group_size(TX, TY, 1))) void tiled(
    __global const MEM(T)* restrict x, __global const MEM(T)* restrict filter,
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y, __local float* memory, const IDX rows, const int depth,
    const int channels, const int out_channels, const int in_group, const int out_group,
    WINDOW_PARAMS) {
  __local float* a_tile = memory;
  __local float* b_tile = memory + TILE_K * A_PITCH;
  const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * TX + lx;
  const IDX row0 = (IDX)get_group_id(0) * TILE_M;
  const int column0 = get_group_id(1) * TILE_N, group = get_group_id(2);
  const int mine = lid % TILE_K, my_row = lid / TILE_K;
  IDX sample[GATHERED];
  int s0[GATHERED], s1[GATHERED], s2[GATHERED];
#pragma unroll
  for (int i = 0; i < GATHERED; ++i) {
    const IDX row = row0 + my_row + i * (THREADS / TILE_K);
    sample[i] = row < rows ? row / out2 / out1 / out0 : -1;
    s0[i] = (int)(row / out2 / out1 % out0) * stride0 - pad0;
    s1[i] = (int)(row / out2 % out1) * stride1 - pad1;
    s2[i] = (int)(row % out2) * stride2 - pad2;
  }
  float sum[WM][WN];
  TILE_CLEAR(sum)
  for (int k = 0; k < depth; k += TILE_K) {
    const int l = k + mine, channel = l % in_group, tap = l / in_group;
    const int t2 = tap % kernel2 * dilation2, t1 = tap / kernel2 % kernel1 * dilation1;
    const int t0 = tap / kernel2 / kernel1 * dilation0;
#pragma unroll
    for (int i = 0; i < GATHERED; ++i) {
      const int p0 = s0[i] + t0, p1 = s1[i] + t1, p2 = s2[i] + t2;
      float v = 0;
      if (l < depth && sample[i] >= 0 && p0 >= 0 && p0 < in0 && p1 >= 0 && p1 < in1 && p2 >= 0 &&
          p2 < in2) {
        const IDX pixel = ((sample[i] * in0 + p0) * in1 + p1) * in2 + p2;
        v = LOAD(T, x, pixel * channels + group * in_group + channel);
      }
      a_tile[mine * A_PITCH + my_row + i * (THREADS / TILE_K)] = v;
    }
    for (int i = lid; i < TILE_N * TILE_K; i += THREADS) {
      const int c = i % TILE_N, r = i / TILE_N, column = column0 + c;
      b_tile[r * B_PITCH + c] =
          column < out_group && k + r < depth
              ? LOAD(T, filter, (IDX)(k + r) * out_channels + group * out_group + column)
              : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    TILE_MULTIPLY(sum, a_tile, b_tile, lx, ly)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < WM; ++i) {
    const IDX row = row0 + ly + i * TY;
    if (row >= rows) break;
    for (int j = 0; j < WN; ++j) {
      const int column = column0 + lx + j * TX, c = group * out_group + column;
      if (column >= out_group) break;
      const IDX at = row * out_channels + c;
      float v = sum[i][j];
#ifdef BIAS
      v += LOAD(T, bias, c);
#endif
#ifdef RESIDUAL
      v += LOAD(T, residual, at);
#endif
      STORE(T, y, at, ACTIVATE(ACTIVATION, float, v));
    }
  }
}
