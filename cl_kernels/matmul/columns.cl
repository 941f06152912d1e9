// columns: products of a few rows, y[z][i][j] = activation(sum over l < k of a[z][i][l] b[z][l][j] +
// bias[j] + residual), whose time is that of reading b: each of its elements is read once for ROWS
// rows. Neighbouring columns lie together in b, quads of them at quads. T: f32, f16 or bf16 in memory;
// sums are of float.
// A group of LANES x SLICES work-items does LANES * QUADS * 4 columns: a lane QUADS quads, in one access,
// a slice every SLICES-th four of the k's. The slices' sums are added up in their order. Group (x, y, z):
// columns, rows and parts of K (y is row tile * part_count + part), product. With PART the sums of a
// part of part_k k's go to parts, as matmul/join.cl takes them. A_WIDE: quads of a lie along K.
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=32 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none -DBIAS
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=2 -DQUADS=1 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=4 -DQUADS=1 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_gelu -DBIAS -DRESIDUAL
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=8 -DQUADS=1 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=8 -DQUADS=1 -DLANES=32 -DSLICES=8 -DA_WIDE=0 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=2 -DQUADS=1 -DLANES=32 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=4 -DQUADS=1 -DLANES=32 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=32 -DSLICES=2 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=8 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=1 -DLANES=8 -DSLICES=8 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=4 -DQUADS=1 -DLANES=8 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=4 -DQUADS=1 -DLANES=32 -DSLICES=2 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=2 -DQUADS=1 -DLANES=32 -DSLICES=2 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=2 -DQUADS=1 -DLANES=8 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f32 -DIDX=int -DAXES=0 -DROWS=8 -DQUADS=1 -DLANES=32 -DSLICES=2 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=2 -DLANES=8 -DSLICES=32 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DROWS=4 -DQUADS=2 -DLANES=32 -DSLICES=8 -DA_WIDE=1 -DPART=1 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=f16 -DIDX=int -DAXES=0 -DROWS=1 -DQUADS=2 -DLANES=8 -DSLICES=8 -DA_WIDE=1 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_none
// VARIANT: -DT=bf16 -DIDX=long -DAXES=2 -DROWS=8 -DQUADS=1 -DLANES=8 -DSLICES=8 -DA_WIDE=0 -DPART=0 -DY_WIDE=1 -DACTIVATION=ACT_relu -DBIAS
#include "common/finish.clh"
#include "common/batch.clh"
// Rows whose sums the slices leave in local memory at a time.
#define PASS (ROWS < 4 / QUADS ? ROWS : 4 / QUADS)

__kernel __attribute__((reqd_work_group_size(LANES, SLICES, 1))) void columns(
    __global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
#if PART
    __global float* restrict parts,
#else
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y,
#endif
    const IDX part_count, const IDX part_k, const IDX rows, const IDX columns, const IDX k,
    const IDX a_row, const IDX a_col, const IDX b_row BATCH_PARAMS) {
  __local float4 sums_of[PASS][SLICES][LANES * QUADS];
  const int lane = get_local_id(0), slice = get_local_id(1);
  const IDX column = ((IDX)get_group_id(0) * LANES + lane) * (4 * QUADS);
  const IDX first = (IDX)get_group_id(1) / part_count * ROWS, part = get_group_id(1) % part_count;
  const IDX product = get_group_id(2);
  IDX z = product, a_at = 0, b_at = 0;
  BATCH_OFFSETS(z, a_at, b_at)
  // What lies beyond the edges repeats the last of what is there, and is not stored.
  b_at += min(column, columns - 4 * QUADS);
  const IDX begin = part * part_k, end = min(k, begin + part_k);
  const IDX whole = begin + (end - begin) / 4 * 4;
  float4 sums[ROWS][QUADS];
  UNROLL for (int r = 0; r < ROWS; ++r) {
    UNROLL for (int q = 0; q < QUADS; ++q) sums[r][q] = 0;
  }
#if QUADS == 2
#define READ_B(q0, q1, p)                               \
  {                                                     \
    const uint4 words = *(__global const uint4*)(p);    \
    q0 = CAT(quad_of_, T)(words.lo);                    \
    q1 = CAT(quad_of_, T)(words.hi);                    \
  }
#endif
  for (IDX l = begin + slice * 4; l < whole; l += SLICES * 4) {
    float4 w[4][QUADS];
    UNROLL for (int i = 0; i < 4; ++i) {
#if QUADS == 2
      READ_B(w[i][0], w[i][1], b + b_at + (l + i) * b_row)
#else
      w[i][0] = LOAD4(b + b_at + (l + i) * b_row);
#endif
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
      const IDX at = a_at + min(first + r, rows - 1) * a_row + l * a_col;
#if A_WIDE
      const float4 v = LOAD4(a + at);
#else
      const float4 v = some_of(a + at, a_col, 4);
#endif
      UNROLL for (int q = 0; q < QUADS; ++q) {
        float4 s = sums[r][q];
        s = fma((float4)(v.x), w[0][q], s);
        s = fma((float4)(v.y), w[1][q], s);
        s = fma((float4)(v.z), w[2][q], s);
        sums[r][q] = fma((float4)(v.w), w[3][q], s);
      }
    }
  }
  if (slice == 0) {
    for (IDX l = whole; l < end; ++l) {
      UNROLL for (int q = 0; q < QUADS; ++q) {
        const float4 w = LOAD4(b + b_at + l * b_row + q * 4);
        UNROLL for (int r = 0; r < ROWS; ++r) {
          const float v = LOAD(T, a, a_at + min(first + r, rows - 1) * a_row + l * a_col);
          sums[r][q] = fma((float4)(v), w, sums[r][q]);
        }
      }
    }
  }
  UNROLL for (int pass = 0; pass < ROWS; pass += PASS) {
    if (pass > 0) barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int r = 0; r < PASS; ++r) {
      UNROLL for (int q = 0; q < QUADS; ++q) sums_of[r][slice][lane * QUADS + q] = sums[pass + r][q];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = slice * LANES + lane; i < PASS * LANES * QUADS; i += SLICES * LANES) {
      const int r = i / (LANES * QUADS), quad = i % (LANES * QUADS);
      const IDX at = ((IDX)get_group_id(0) * LANES * QUADS + quad) * 4, row = first + pass + r;
      if (row >= rows || at >= columns) continue;
      float4 sum = sums_of[r][0][quad];
      UNROLL for (int s = 1; s < SLICES; ++s) sum += sums_of[r][s][quad];
#if PART
      *(__global float4*)(parts + ((product * part_count + part) * rows + row) * columns + at) = sum;
#else
      FINISH(sum, columns - at, (product * rows + row) * columns + at, at)
#endif
    }
  }
}
