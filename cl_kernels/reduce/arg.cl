// arg: y[o] = place of the largest (WANT_LARGEST 1) or smallest element along one axis of x[outer, size,
// inner]; of equal ones the first, or the last (LAST 1). NaN is chosen before any number; where EDGE
// is defined, what is not beyond it counts as EDGE, NaN too.
// A group has GX outputs side by side and GY parts of each. T, TO: dtypes of x and y.
// VARIANT: -DT=f32 -DTO=i64 -DWANT_LARGEST=1 -DLAST=0 -DGX=1 -DGY=64 -DIDX=int
// VARIANT: -DT=f32 -DTO=i32 -DWANT_LARGEST=1 -DLAST=0 -DGX=1 -DGY=64 -DIDX=int -DEDGE=-FLT_MAX
// VARIANT: -DT=u8 -DTO=i32 -DWANT_LARGEST=0 -DLAST=1 -DGX=64 -DGY=1 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define GROUP (GX * GY)
#if WANT_LARGEST
#define BETTER(a, b) ((b) == (b) && ((a) != (a) || (a) > (b)))
#else
#define BETTER(a, b) ((b) == (b) && ((a) != (a) || (a) < (b)))
#endif
#define EQUAL(a, b) ((a) == (b) || ((a) != (a) && (b) != (b)))
#if LAST
#define PREFERRED(ka, kb) ((ka) > (kb))
#else
#define PREFERRED(ka, kb) ((ka) < (kb))
#endif
#ifdef EDGE
#if WANT_LARGEST
#define COUNTED(v) ((v) > EDGE ? (v) : (ACC)(EDGE))
#else
#define COUNTED(v) ((v) < EDGE ? (v) : (ACC)(EDGE))
#endif
#else
#define COUNTED(v) (v)
#endif
// Whether element ka of value a is chosen rather than kb; kb < 0 is none.
#define CHOSEN(a, ka, b, kb) \
  ((kb) < 0 || BETTER(a, b) || (EQUAL(a, b) && PREFERRED(ka, kb)))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void arg(__global const MEM(T)* restrict x, __global MEM(TO)* restrict y, const IDX outputs,
         const IDX size, const IDX inner) {
  const int id = get_local_id(0), gx = id % GX, gy = id / GX;
  const IDX o = (IDX)get_group_id(0) * GX + gx;
  ACC best = 0;
  IDX place = -1;
  if (o < outputs) {
    const IDX base = o / inner * size * inner + o % inner;
    for (IDX k = gy; k < size; k += GY) {
      const ACC read = LOAD(T, x, base + k * inner), v = COUNTED(read);
      if (CHOSEN(v, k, best, place)) best = v, place = k;
    }
  }
#if GY > 1
  __local ACC values[GROUP];
  __local IDX places[GROUP];
  values[id] = best;
  places[id] = place;
  for (int rest = GY / 2; rest > 0; rest /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (gy < rest) {
      const ACC v = values[id + rest * GX];
      const IDX k = places[id + rest * GX];
      if (k >= 0 && CHOSEN(v, k, best, place)) {
        values[id] = best = v;
        places[id] = place = k;
      }
    }
  }
#endif
  if (o < outputs && gy == 0) STORE(TO, y, o, (long)place);
}
