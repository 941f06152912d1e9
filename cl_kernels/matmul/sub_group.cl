// sub_group: y[z] = activation(a[z] b[z] + bias + residual) without local memory, for devices where
// a lane's value costs nothing to its sub-group (cl_intel_subgroups). Each sub-group of LANES lanes
// computes ROWS rows of 4 * LANES columns, of which lane l has l, l + LANES, l + 2 LANES and l + 3
// LANES:
//
//        k0 .. k0 + LANES             4 * LANES columns
//      +-----------------+          +------------------+   a block of a is read with one k a lane; each of its
//   a  | one k a lane    | ROWS  b  | one row at a time | values then multiplies a row of b for all lanes.
//      +-----------------+          +------------------+
//
// Neighbours in K lie together in a and neighbouring columns in b; k is a multiple of LANES,
// columns one of 4 * LANES, and b and its products begin at multiples of 16 bytes. WARPS sub-groups
// of a group lie one below the other and share b in the first-level cache. Group (tile of rows *
// column_tiles + tile of columns, z); PART, part_count and part_k are as in tiled.cl. Sums are in
// the order of K.
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DLANES=8 -DROWS=16 -DWARPS=8 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DLANES=8 -DROWS=16 -DWARPS=4 -DPART=0 -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=long -DAXES=1 -DACTIVATION=ACT_gelu -DLANES=16 -DROWS=16 -DWARPS=8 -DPART=0 -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DLANES=8 -DROWS=16 -DWARPS=4 -DPART=1
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DLANES=16 -DROWS=16 -DWARPS=4 -DPART=0
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#include "common/activation.clh"
#include "common/dtype.clh"
#include "common/batch.clh"
#define UNROLL _Pragma("unroll")
#define READ1(p) as_float(intel_sub_group_block_read((__global const uint*)(p)))
#define READ4(p) as_float4(intel_sub_group_block_read4((__global const uint*)(p)))

__kernel __attribute__((intel_reqd_sub_group_size(LANES), reqd_work_group_size(LANES * WARPS, 1, 1)))
void sub_group(__global const float* restrict a, __global const float* restrict b,
#if PART
               __global float* restrict parts, const IDX part_count, const IDX part_k,
#else
#ifdef BIAS
               __global const float* restrict bias,
#endif
#ifdef RESIDUAL
               __global const float* restrict residual,
#endif
               __global float* restrict y,
#endif
               const IDX column_tiles, const IDX rows, const IDX columns, const IDX k,
               const IDX a_row, const IDX b_row BATCH_PARAMS) {
  const IDX row_tile = (IDX)get_group_id(0) / column_tiles, z = get_group_id(1);
  const IDX row0 = (row_tile * WARPS + (int)get_local_id(0) / LANES) * ROWS;
  const IDX column = ((IDX)get_group_id(0) - row_tile * column_tiles) * (4 * LANES);
  const int lane = get_local_id(0) % LANES;
#if PART
  const IDX first = z % part_count * part_k, end = min(k, first + part_k);
  IDX product = z / part_count;
#else
  const IDX first = 0, end = k;
  IDX product = z;
#endif
  IDX a0 = 0, b0 = 0;
  BATCH_OFFSETS(product, a0, b0)
  // Rows beyond the edge repeat the last one and are not stored.
  IDX from[ROWS];
  UNROLL for (int i = 0; i < ROWS; ++i) from[i] = a0 + min(row0 + i, rows - 1) * a_row;
  float4 sum[ROWS];
  UNROLL for (int i = 0; i < ROWS; ++i) sum[i] = 0;
  for (IDX l = first; l < end; l += LANES) {
    float u[ROWS];
    UNROLL for (int i = 0; i < ROWS; ++i) u[i] = READ1(a + from[i] + l);
    UNROLL for (int s = 0; s < LANES; ++s) {
      const float4 v = READ4(b + b0 + (l + s) * b_row + column);
      UNROLL for (int i = 0; i < ROWS; ++i)
        sum[i] = fma((float4)(intel_sub_group_shuffle(u[i], s)), v, sum[i]);
    }
  }
#if PART
  __global float* to = parts + (z * rows + row0) * columns + column + lane;
#define FINISH(v, j, at) to[at] = v;
#else
  const IDX y0 = (z * rows + row0) * columns + column + lane;
#ifdef BIAS
#define BIAS_AT(i) bias[column + lane + (i)]
#else
#define BIAS_AT(i) 0.0f
#endif
#ifdef RESIDUAL
#define RESIDUAL_AT(i) residual[y0 + (i)]
#else
#define RESIDUAL_AT(i) 0.0f
#endif
#define FINISH(v, j, at)                                                 \
  {                                                                      \
    const float v_ = (v) + BIAS_AT((j)*LANES) + RESIDUAL_AT(at);         \
    y[y0 + (at)] = ACTIVATE(ACTIVATION, float, v_);                      \
  }
#endif
  UNROLL for (int i = 0; i < ROWS; ++i) {
    if (row0 + i < rows) {
      const IDX at = i * columns;
      FINISH(sum[i].x, 0, at)
      FINISH(sum[i].y, 1, at + LANES)
      FINISH(sum[i].z, 2, at + 2 * LANES)
      FINISH(sum[i].w, 3, at + 3 * LANES)
    }
  }
}
