// cumulate: running sums (or products) along one axis of x[outer, size, inner], one work-item per
// line. Sums of floats carry what each addition loses (Kahan), so long lines keep their digits.
// C: what T is computed in: f, d, l, u. PRODUCT, EXCLUSIVE, REVERSE: 0 or 1.
// VARIANT: -DT=f32 -DC=f -DPRODUCT=0 -DEXCLUSIVE=0 -DREVERSE=0 -DGROUP=64 -DIDX=int
// VARIANT: -DT=i32 -DC=l -DPRODUCT=1 -DEXCLUSIVE=1 -DREVERSE=1 -DGROUP=64 -DIDX=long
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
#if IS_FLOAT
  ACC sum = PRODUCT, lost = 0;
#else
  ulong sum = PRODUCT;
#endif
  for (IDX step = 0; step < size; ++step) {
    const IDX at = base + (REVERSE ? size - 1 - step : step) * inner;
    const ACC v = LOAD(T, x, at);
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
  }
}
