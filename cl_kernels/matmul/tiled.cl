// tiled: y[z] = activation(a[z] b[z] + bias + residual) by tiles in local memory, sums in float.
// T is f32, f16 or bf16. Group (tile of rows, tile of columns, z); A_ALONG says that neighbours in K
// lie together in a (otherwise neighbouring rows do), B_ALONG that neighbouring columns lie together
// in b. `memory` holds TILE_K * (A_PITCH + B_PITCH) floats.
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DTX=16 -DTY=16 -DWM=4 -DWN=4 -DTILE_K=16 -DA_ALONG=1 -DB_ALONG=1
// VARIANT: -DT=bf16 -DIDX=long -DAXES=2 -DACTIVATION=ACT_gelu -DTX=8 -DTY=8 -DWM=2 -DWN=2 -DTILE_K=8 -DA_ALONG=0 -DB_ALONG=0 -DBIAS -DRESIDUAL
#include "common/dtype.clh"
#include "common/activation.clh"
#include "common/batch.clh"
#include "common/tile.clh"

__kernel __attribute__((reqd_work_group_size(TX, TY, 1))) void tiled(
    __global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y, __local float* memory, const IDX m, const IDX n, const IDX k,
    const IDX a_row, const IDX a_col, const IDX b_row, const IDX b_col BATCH_PARAMS) {
  __local float* a_tile = memory;
  __local float* b_tile = memory + TILE_K * A_PITCH;
  const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * TX + lx;
  const IDX row0 = (IDX)get_group_id(0) * TILE_M, column0 = (IDX)get_group_id(1) * TILE_N;
  IDX z = get_group_id(2), a0 = 0, b0 = 0;
  const IDX y0 = z * m * n;
  BATCH_OFFSETS(z, a0, b0)
  float sum[WM][WN];
  TILE_CLEAR(sum)
  for (IDX k0 = 0; k0 < k; k0 += TILE_K) {
    for (int i = lid; i < TILE_M * TILE_K; i += THREADS) {
      const int r = A_ALONG ? i / TILE_K : i % TILE_M, c = A_ALONG ? i % TILE_K : i / TILE_M;
      const IDX row = row0 + r, l = k0 + c;
      a_tile[c * A_PITCH + r] = row < m && l < k ? LOAD(T, a, a0 + row * a_row + l * a_col) : 0.0f;
    }
    for (int i = lid; i < TILE_N * TILE_K; i += THREADS) {
      const int c = B_ALONG ? i % TILE_N : i / TILE_K, r = B_ALONG ? i / TILE_N : i % TILE_K;
      const IDX column = column0 + c, l = k0 + r;
      b_tile[r * B_PITCH + c] =
          column < n && l < k ? LOAD(T, b, b0 + l * b_row + column * b_col) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    TILE_MULTIPLY(sum, a_tile, b_tile, lx, ly)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < WM; ++i) {
    const IDX row = row0 + ly + i * TY;
    if (row >= m) break;
    for (int j = 0; j < WN; ++j) {
      const IDX column = column0 + lx + j * TX, at = y0 + row * n + column;
      if (column >= n) break;
      float v = sum[i][j];
#ifdef BIAS
      v += LOAD(T, bias, column);
#endif
#ifdef RESIDUAL
      v += LOAD(T, residual, at);
#endif
      STORE(T, y, at, ACTIVATE(ACTIVATION, float, v));
    }
  }
}
