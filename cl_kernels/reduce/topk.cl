// topk: the k largest (LARGEST 1) or smallest elements of each chunk of one axis of
// x[outer, size, inner], in order; all chunks' finds lie one behind the other, `left` of them. One
// work-item per element counts the elements of its chunk that come before its own, which is its
// place among the finds; equal ones come in the order of their index and NaN is larger than any
// number. With PLACED x are finds of such a launch, and `from` says where on the axis they stood.
// VARIANT: -DT=f32 -DTO=i64 -DLARGEST=1 -DPLACED=0 -DGROUP=64 -DIDX=int
// VARIANT: -DT=i8 -DTO=i32 -DLARGEST=0 -DPLACED=1 -DGROUP=64 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define ABOVE(a, b) ((b) == (b) && ((a) != (a) || (a) > (b)))
#if LARGEST
#define BEFORE(a, b) ABOVE(a, b)
#else
#define BEFORE(a, b) ABOVE(b, a)
#endif
#define EQUAL(a, b) ((a) == (b) || ((a) != (a) && (b) != (b)))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void topk(__global const MEM(T)* restrict x, __global const MEM(TO)* restrict from,
          __global MEM(T)* restrict values, __global MEM(TO)* restrict places, const IDX elements,
          const IDX size, const IDX inner, const IDX k, const IDX chunk, const IDX left) {
  const IDX i = get_global_id(0);
  if (i >= elements) return;
  const IDX column = i % inner, own = i / inner % size, outer = i / inner / size;
  const IDX base = outer * size * inner + column;
  const IDX begin = own / chunk * chunk, end = min(begin + chunk, size);
  const ACC v = LOAD(T, x, i);
  IDX rank = 0;
  for (IDX j = begin; j < end; ++j) {
    const ACC w = LOAD(T, x, base + j * inner);
    if (BEFORE(w, v) || (j < own && EQUAL(w, v))) ++rank;
  }
  if (rank < k) {
    const IDX to = (outer * left + own / chunk * k + rank) * inner + column;
    STORE(T, values, to, v);
#if PLACED
    places[to] = from[i];
#else
    STORE(TO, places, to, (long)own);
#endif
  }
}
