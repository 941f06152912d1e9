// cumulate: running sums (or products) along one axis of x[outer, size, inner], one work-item per
// line. Sums of floats carry what each addition loses (Kahan), so long lines keep their digits.
// With LOGS the logarithm of the sum of exponentials: exp(top) is the largest term and the sum is
// kept over it.
// C: what T is computed in: f, d, l, u. PRODUCT, LOGS, EXCLUSIVE, REVERSE: 0 or 1.
// VARIANT: -DT=f32 -DC=f -DPRODUCT=0 -DLOGS=0 -DEXCLUSIVE=0 -DREVERSE=0 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f32 -DC=f -DPRODUCT=0 -DLOGS=1 -DEXCLUSIVE=0 -DREVERSE=0 -DGROUP=64 -DIDX=int
// VARIANT: -DT=i32 -DC=l -DPRODUCT=1 -DLOGS=0 -DEXCLUSIVE=1 -DREVERSE=1 -DGROUP=64 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define IS_FLOAT_f 1
#define IS_FLOAT_d 1
#define IS_FLOAT_l 0
#define IS_FLOAT_u 0
#define IS_FLOAT CAT(IS_FLOAT_, C)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void cumulate(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX lines,
              const IDX size, const IDX inner) {
  const IDX line = get_global_id(0);
  if (line >= lines) return;
  const IDX base = line / inner * size * inner + line % inner;
#if LOGS
  ACC sum = 0, top = -INFINITY;
#elif IS_FLOAT
  ACC sum = PRODUCT, lost = 0;
#else
  ulong sum = PRODUCT;
#endif
  for (IDX step = 0; step < size; ++step) {
    const IDX at = base + (REVERSE ? size - 1 - step : step) * inner;
    const ACC v = LOAD(T, x, at);
#if LOGS
    const ACC before = sum == 0 ? top : top + log(sum);
    if (v > top || v != v) {
      sum = v != v || top == -INFINITY ? (ACC)1 : sum * exp(top - v) + 1;
      top = v;
    } else if (v == top) {
      sum += v == -INFINITY ? 0 : 1;
    } else if (top == top) {
      sum += exp(v - top);
    }
    const ACC after = sum == 0 ? top : top + log(sum);
    STORE(T, y, at, EXCLUSIVE ? before : after);
#else
#if EXCLUSIVE
    STORE(T, y, at, (ACC)sum);
#endif
#if IS_FLOAT && !PRODUCT
    const ACC add = v - lost, next = sum + add;
    lost = next - next == 0 ? (next - sum) - add : (ACC)0;
    sum = next;
#elif IS_FLOAT
    sum *= v;
#elif PRODUCT
    sum *= (ulong)v;
#else
    sum += (ulong)v;
#endif
#if !EXCLUSIVE
    STORE(T, y, at, (ACC)sum);
#endif
#endif
  }
}
