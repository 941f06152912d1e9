// matmul_packed: y[row][column] = sum over k < depth of x[row][k] * (q - zero) * scale, where q is
// number k of a column's weights, BITS bits each, the first in the lowest bits of a byte, and scale
// and zero are those of its block. A column has `blocks` blocks of `block_bytes` bytes, the last one
// filled up. One group for each column and ROWS rows; its work-items go through the column WIDTH
// bytes at a time. Without zeros they are the middle; PACKED_ZEROS: packed like the weights; ZEROS:
// of type T. CHOICE: the dtype of `choice`, which says for each row which of `matrices` it goes
// through; ROWS is 1 then.
// VARIANT: -DT=f32 -DBITS=4 -DWIDTH=4 -DROWS=8 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DBITS=4 -DWIDTH=4 -DROWS=1 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DBITS=4 -DWIDTH=4 -DROWS=2 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DBITS=4 -DWIDTH=4 -DROWS=4 -DGROUP=64 -DIDX=int -DPACKED_ZEROS=1
// VARIANT: -DT=f32 -DBITS=8 -DWIDTH=4 -DROWS=1 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DBITS=8 -DWIDTH=4 -DROWS=2 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DBITS=8 -DWIDTH=4 -DROWS=4 -DGROUP=64 -DIDX=int -DPACKED_ZEROS=1
// VARIANT: -DT=f32 -DBITS=8 -DWIDTH=4 -DROWS=8 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f16 -DBITS=8 -DWIDTH=1 -DROWS=1 -DGROUP=1 -DIDX=long -DPACKED_ZEROS=1
// VARIANT: -DT=f64 -DBITS=2 -DWIDTH=4 -DROWS=1 -DGROUP=32 -DIDX=int -DZEROS=1 -DCHOICE=i64
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define PER (8 / BITS)
#define MASK ((1 << BITS) - 1)
DEFINE_GROUP_JOIN(group_sum, ACC, PLUS)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void matmul_packed(__global const MEM(T)* restrict x, __global const uchar* restrict weights,
                   __global const MEM(T)* restrict scales,
#ifdef PACKED_ZEROS
                   __global const uchar* restrict zeros,
#elif defined(ZEROS)
                   __global const MEM(T)* restrict zeros,
#endif
#ifdef CHOICE
                   __global const MEM(CHOICE)* restrict choice,
#endif
                   __global MEM(T)* restrict y, const IDX rows, const IDX columns, const IDX depth,
                   const IDX blocks, const IDX block_bytes
#ifdef CHOICE
                   , const IDX matrices, ERROR_PARAMS
#endif
                   ) {
  __local ACC tmp[GROUP];
  const int id = get_local_id(0);
  const IDX column = get_group_id(0), first = (IDX)get_group_id(1) * ROWS;
  IDX line = column;
#ifdef CHOICE
  // The same for the whole group, so that it ends as one.
  const long matrix = choice[first];
  if (matrix < 0 || matrix >= matrices) {
    if (id == 0) REPORT(ERROR_INDEX);
    return;
  }
  line += (IDX)matrix * columns;
#endif
  const IDX bytes = blocks * block_bytes;
  ACC sums[ROWS];
  for (int r = 0; r < ROWS; ++r) sums[r] = 0;
  for (IDX at = (IDX)id * WIDTH; at < bytes; at += GROUP * WIDTH) {
    const IDX block = at / block_bytes;
    const ACC scale = LOAD(T, scales, line * blocks + block);
#ifdef PACKED_ZEROS
    const IDX zero_bytes = (blocks * BITS + 7) / 8;
    const int code = zeros[line * zero_bytes + block * BITS / 8];
    const ACC zero = (code >> (int)(block * BITS % 8)) & MASK;
#elif defined(ZEROS)
    const ACC zero = LOAD(T, zeros, line * blocks + block);
#else
    const ACC zero = 1 << (BITS - 1);
#endif
    for (int i = 0; i < WIDTH; ++i) {
      const int codes = weights[line * bytes + at + i];
      for (int p = 0; p < PER; ++p) {
        const IDX k = (at + i) * PER + p;
        if (k >= depth) break;
        const ACC weight = (((codes >> (p * BITS)) & MASK) - zero) * scale;
        for (int r = 0; r < ROWS; ++r) {
          const IDX row = min(first + r, rows - 1);
          sums[r] += LOAD(T, x, row * depth + k) * weight;
        }
      }
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    const ACC sum = group_sum(sums[r], tmp);
    if (id == 0 && first + r < rows) STORE(T, y, (first + r) * columns + column, sum);
  }
}
