// lp_normalize: y = x over the p-norm along the middle axis of [outer, n, inner], one work-item per
//   line; a line of zeros stays so.
// lrn: y = x / (bias + factor * sum of squares of the neighbours)^beta along the same axis, `before`
//   places before to `behind` behind; one work-item per element.
// T: dtype of x and y; P: 1 or 2. Computed in float, f64 in double.
// VARIANT: -DT=f32 -DP=2 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f16 -DP=1 -DGROUP=64 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void lp_normalize(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX lines,
                  const IDX n, const IDX inner) {
  const IDX line = get_global_id(0);
  if (line >= lines) return;
  const IDX base = line / inner * n * inner + line % inner;
  ACC sum = 0;
  for (IDX k = 0; k < n; ++k) {
    const ACC v = LOAD(T, x, base + k * inner);
    sum += P == 1 ? fabs(v) : v * v;
  }
  const ACC norm = P == 1 ? sum : sqrt(sum);
  for (IDX k = 0; k < n; ++k) {
    const ACC v = LOAD(T, x, base + k * inner);
    STORE(T, y, base + k * inner, norm == 0 ? (ACC)0 : v / norm);
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void lrn(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX elements,
         const IDX n, const IDX inner, const IDX before, const IDX behind, const float factor,
         const float beta, const float bias) {
  const IDX i = get_global_id(0);
  if (i >= elements) return;
  const IDX k = i / inner % n, base = i - k * inner;
  const IDX last = behind < n - 1 - k ? k + behind : n - 1;
  ACC sum = 0;
  for (IDX j = k > before ? k - before : 0; j <= last; ++j) {
    const ACC v = LOAD(T, x, base + j * inner);
    sum += v * v;
  }
  const ACC v = LOAD(T, x, i);
  STORE(T, y, i, v / pow((ACC)(bias + factor * sum), (ACC)beta));
}
