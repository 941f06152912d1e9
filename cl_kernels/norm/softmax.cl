// softmax_rows: y = exp(x - max) / sum over rows of n elements (or its logarithm: LOG 1), one group
//   of GROUP work-items per row.
// softmax_columns: the same along the middle axis of [outer, n, inner], one work-item per line.
// T: dtype of x and y; computed in float, f64 in double.
// VARIANT: -DT=f32 -DLOG=0 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DLOG=0 -DGROUP=256 -DIDX=int -DEACH=4
// VARIANT: -DT=f32 -DLOG=0 -DGROUP=256 -DIDX=int -DEACH=8
// VARIANT: -DT=f32 -DLOG=0 -DGROUP=256 -DIDX=int -DEACH=16
// VARIANT: -DT=f16 -DLOG=1 -DGROUP=1 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define UNROLL _Pragma("unroll")
#define ACC CARRY(T)
DEFINE_GROUP_JOIN(group_max, ACC, LARGER)
DEFINE_GROUP_JOIN(group_sum, ACC, PLUS)
#if LOG
#define RESULT(v) ((v) - largest - last)
#define LAST(sum) log(sum)
#else
#define RESULT(v) (exp((v) - largest) / last)
#define LAST(sum) (sum)
#endif

#ifdef EACH
// As below, for rows of at most EACH * GROUP elements, which stay in registers: one pass over memory.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void softmax_rows(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX n) {
  __local ACC tmp[GROUP];
  const int id = get_local_id(0);
  const IDX base = (IDX)get_group_id(0) * n;
  ACC held[EACH], most = -INFINITY, total = 0;
  UNROLL for (int i = 0; i < EACH; ++i) {
    const IDX k = id + i * GROUP;
    held[i] = -INFINITY;
    if (k < n) held[i] = LOAD(T, x, base + k);
  }
  UNROLL for (int i = 0; i < EACH; ++i) most = LARGER(most, held[i]);
  const ACC largest = group_max(most, tmp);
  UNROLL for (int i = 0; i < EACH; ++i) {
    if (id + i * GROUP < n) total += exp(held[i] - largest);
  }
  const ACC last = LAST(group_sum(total, tmp));
  UNROLL for (int i = 0; i < EACH; ++i) {
    const IDX k = id + i * GROUP;
    if (k < n) STORE(T, y, base + k, RESULT(held[i]));
  }
}
#else
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void softmax_rows(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX n) {
  __local ACC tmp[GROUP];
  const int id = get_local_id(0);
  const IDX base = (IDX)get_group_id(0) * n;
  ACC most = -INFINITY, total = 0;
  for (IDX k = id; k < n; k += GROUP) {
    const ACC v = LOAD(T, x, base + k);
    most = LARGER(most, v);
  }
  const ACC largest = group_max(most, tmp);
  for (IDX k = id; k < n; k += GROUP) {
    const ACC v = LOAD(T, x, base + k);
    total += exp(v - largest);
  }
  const ACC last = LAST(group_sum(total, tmp));
  for (IDX k = id; k < n; k += GROUP) {
    const ACC v = LOAD(T, x, base + k);
    STORE(T, y, base + k, RESULT(v));
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void softmax_columns(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                     const IDX lines, const IDX n, const IDX inner) {
  const IDX line = get_global_id(0);
  if (line >= lines) return;
  const IDX base = line / inner * n * inner + line % inner;
  ACC largest = -INFINITY, total = 0;
  for (IDX k = 0; k < n; ++k) {
    const ACC v = LOAD(T, x, base + k * inner);
    largest = LARGER(largest, v);
  }
  for (IDX k = 0; k < n; ++k) {
    const ACC v = LOAD(T, x, base + k * inner);
    total += exp(v - largest);
  }
  const ACC last = LAST(total);
  for (IDX k = 0; k < n; ++k) {
    const ACC v = LOAD(T, x, base + k * inner);
    STORE(T, y, base + k * inner, RESULT(v));
  }
}
