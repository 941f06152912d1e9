// Probe of common/matrix_unit.clh: a warp multiplies in = {A, B}, each of 16 x 16 elements (of MATRIX_BYTES,
// pairs along K) and stored in rows; B's rows are those of K. The first 256 of out are A B with A as it lies and B turned by the loads; the next 256 are the same out of
// copies that lie the other way.
// VARIANT: -DT=f16 -DMATRIX
// VARIANT: -DT=f16 -DMATRIX -DMATRIX_PTX
// VARIANT: -DT=bf16 -DMATRIX -DMATRIX_PTX
// VARIANT: -DMATRIX -DMATRIX_BYTES -DMATRIX_PTX
// VARIANT: -DMATRIX -DMATRIX_BYTES
#define THREADS 32
#include "common/dot4.clh"
#include "common/matrix_unit.clh"
#define PITCH (16 + MATRIX_PITCH)
#define LINES(i) ((i) / 8 % 2 * 8 + (i) % 8) * PITCH + (i) / 16 * 8  // in the order of A's fragment
#define ACROSS(i) ((i) / 16 * 8 + (i) % 8) * PITCH + (i) / 8 % 2 * 8
#define A_LINES(i) (a + LINES(i))
#define A_ACROSS(i) (a_turned + ACROSS(i))
#define B_ACROSS(i) (b_turned + ACROSS(i))
#define B_LINES(i) (b + LINES(i))

#define MULTIPLY_ALL(u, v, to)                                                                     \
  for (int j = 0; j < 2; ++j) {                                                                    \
    MATRIX_PAIR upper = 0, lower = 0;                                                              \
    const uint first = j == 0 ? v.x : v.z, second = j == 0 ? v.y : v.w;                            \
    MATRIX_MULTIPLY(upper, lower, u, first, second)                                                \
    vstore2(upper, 0, (to) + lane / 4 * 16 + j * 8 + lane % 4 * 2);                                \
    vstore2(lower, 0, (to) + (lane / 4 + 8) * 16 + j * 8 + lane % 4 * 2);                          \
  }
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void matrix_words(
    __global const ushort* restrict in, __global MATRIX_SUM* restrict out) {
  __local ushort a[16 * PITCH] __attribute__((aligned(16)));
  __local ushort b[16 * PITCH] __attribute__((aligned(16)));
  __local ushort a_turned[16 * PITCH] __attribute__((aligned(16)));
  __local ushort b_turned[16 * PITCH] __attribute__((aligned(16)));
  MATRIX_MEMORY
  const int lid = get_local_id(0), lane = lid;
  for (int i = lane; i < 256; i += 32) {
    const int row = i / 16, column = i % 16;
    a[row * PITCH + column] = a_turned[column * PITCH + row] = in[i];
    b[row * PITCH + column] = b_turned[column * PITCH + row] = in[256 + i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 u, v;
  LOAD_MATRICES(u, A_LINES)
  LOAD_MATRICES_TURNED(v, B_LINES)
  MULTIPLY_ALL(u, v, out)
  LOAD_MATRICES_TURNED(u, A_ACROSS)
  LOAD_MATRICES(v, B_ACROSS)
  MULTIPLY_ALL(u, v, out + 256)
}
