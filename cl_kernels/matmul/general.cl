// general: y[z][i][j] = activation(sum over l < k of a[z][i][l] b[z][l][j] + bias[j] + residual).
// Any dtype T, any steps; one work-item per element of y, columns fastest. WIDE is the type of the
// sums: float, double, or ulong, which wraps around to any width.
// VARIANT: -DT=f32 -DWIDE=float -DIDX=int -DAXES=0 -DACTIVATION=ACT_none
// VARIANT: -DT=i32 -DWIDE=ulong -DIDX=long -DAXES=2 -DACTIVATION=ACT_relu6 -DBIAS -DRESIDUAL -DINTEGER
#include "common/dtype.clh"
#include "common/activation.clh"
#include "common/batch.clh"

__kernel void general(__global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
#ifdef BIAS
                      __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
                      __global const MEM(T)* restrict residual,
#endif
                      __global MEM(T)* restrict y, const IDX total, const IDX m, const IDX n,
                      const IDX k, const IDX a_row, const IDX a_col, const IDX b_row,
                      const IDX b_col BATCH_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const IDX row = at / n % m, column = at % n;
  IDX z = at / n / m, a_at = row * a_row, b_at = column * b_col;
  BATCH_OFFSETS(z, a_at, b_at)
  WIDE sum = 0;
#ifdef BIAS
  sum += (WIDE)LOAD(T, bias, column);
#endif
#ifdef RESIDUAL
  sum += (WIDE)LOAD(T, residual, at);
#endif
  for (IDX i = 0; i < k; ++i) {
    sum += (WIDE)LOAD(T, a, a_at) * (WIDE)LOAD(T, b, b_at);
    a_at += a_col;
    b_at += b_row;
  }
#ifdef INTEGER
  const MEM(T) cut = (MEM(T))sum;
  y[at] = ACTIVATE(ACTIVATION, MEM(T), cut);
#else
  STORE(T, y, at, ACTIVATE(ACTIVATION, WIDE, sum));
#endif
}
