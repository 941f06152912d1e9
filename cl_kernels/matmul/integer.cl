// matmul_integer: y[z][i][j] = sum over l < k of (a[z][i][l] - a_zero) (b[z][l][j] - b_zero) + bias[j],
// in integers of type S (int or long), which wrap around. One work-item per element of y, columns
// fastest. A_ZEROS: a zero point for each of `rows` rows; B_ZEROS: one for each column.
// PACKED: b lies in words (integer_pack.cl), its matrices apart by the batch's steps.
// REQUANTIZED: sums become integers of type Y (common/requantize.clh).
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=i32 -DIDX=int -DAXES=0
// VARIANT: -DX=i16 -DW=i8 -DS=i64 -DY=i64 -DIDX=long -DAXES=2 -DA_ZERO -DA_ZEROS -DB_ZERO -DB_ZEROS -DBIAS
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=u8 -DIDX=int -DAXES=0 -DREQUANTIZED -DZERO
// VARIANT: -DX=i16 -DW=i8 -DS=i64 -DY=i16 -DIDX=long -DAXES=2 -DA_ZERO -DA_ZEROS -DB_ZERO -DB_ZEROS -DBIAS -DREQUANTIZED -DFIXED -DWIDE
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=i32 -DIDX=int -DAXES=0 -DA_ZERO -DPACKED
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=i32 -DIDX=int -DAXES=0 -DREQUANTIZED -DREAL
#include "common/dtype.clh"
#include "common/requantize.clh"
#include "common/batch.clh"
#include "common/words.clh"
#ifdef PACKED
#define B_AT(i) UNPACKED(b, b_at, (n + 3) / 4 * 4, column, i)
#else
#define B_AT(i) b[b_at + (i)*b_row]
#endif

__kernel void matmul_integer(__global const MEM(X)* restrict a, __global const MEM(W)* restrict b,
#ifdef A_ZERO
                             __global const MEM(X)* restrict a_zero,
#endif
#ifdef B_ZERO
                             __global const MEM(W)* restrict b_zero,
#endif
#ifdef BIAS
                             __global const MEM(S)* restrict bias,
#endif
                             __global MEM(Y)* restrict y, const IDX total, const IDX rows,
                             const IDX m, const IDX n, const IDX k, const IDX a_row,
                             const IDX a_col, const IDX b_row, const IDX b_col BATCH_PARAMS EPILOGUE_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const IDX row = at / n % m, column = at % n;
#ifdef PACKED
  IDX z = at / n / m, a_at = row * a_row, b_at = 0;
#else
  IDX z = at / n / m, a_at = row * a_row, b_at = column * b_col;
#endif
  BATCH_OFFSETS(z, a_at, b_at)
  MEM(S) a_moved = 0, b_moved = 0, sum = 0;
#ifdef A_ZEROS
  a_moved = a_zero[row % rows];
#elif defined(A_ZERO)
  a_moved = a_zero[0];
#endif
#ifdef B_ZEROS
  b_moved = b_zero[column];
#elif defined(B_ZERO)
  b_moved = b_zero[0];
#endif
#ifdef BIAS
  sum = bias[column];
#endif
  for (IDX i = 0; i < k; ++i) {
    sum += ((MEM(S))a[a_at] - a_moved) * ((MEM(S))B_AT(i) - b_moved);
    a_at += a_col;
  }
  STORE(Y, y, at, EPILOGUE(sum, column));
}
