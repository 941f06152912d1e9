// reduce: y[o * pieces + p] = KIND over elements [p * piece, (p + 1) * piece) of output o's set.
// The set is a box of up to four axes (r0 innermost, steps t0...) at an offset of up to four axes
// (k0 innermost, steps s0...). A group has GX outputs side by side and GY parts of each; sums run
// over 256 elements before they are added to each other, so that a float keeps its digits.
// T, TO: dtypes of x and y. KIND: Sum Mean Max Min Prod All Any L1 L2 LogSum SumSquare LogSumExp.
// MAPS 0: x holds partial results. FINISHES 0: y is to hold partial results; n: elements in a set.
// KEPT, REDUCED: axes in use (0 to 4). SHIFTED 1 (LogSumExp): shift[o] is the largest element of the set.
// VARIANT: -DT=f32 -DTO=f32 -DC=f -DKIND=Sum -DMAPS=1 -DFINISHES=1 -DKEPT=1 -DREDUCED=1 -DSHIFTED=0 -DGX=1 -DGY=64 -DIDX=int
// VARIANT: -DT=f32 -DTO=f32 -DC=f -DKIND=LogSumExp -DMAPS=1 -DFINISHES=1 -DKEPT=2 -DREDUCED=3 -DSHIFTED=1 -DGX=64 -DGY=1 -DIDX=int
// VARIANT: -DT=i16 -DTO=i64 -DC=l -DKIND=Mean -DMAPS=1 -DFINISHES=0 -DKEPT=4 -DREDUCED=4 -DSHIFTED=0 -DGX=16 -DGY=4 -DIDX=long
// VARIANT: -DT=bool -DTO=bool -DC=u -DKIND=Any -DMAPS=1 -DFINISHES=1 -DKEPT=0 -DREDUCED=1 -DSHIFTED=0 -DGX=64 -DGY=1 -DIDX=int
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define GROUP (GX * GY)
#define BLOCK 256

#define LOWEST_f32 (-INFINITY)
#define LOWEST_f16 (-INFINITY)
#define LOWEST_bf16 (-INFINITY)
#define LOWEST_f64 (-(double)INFINITY)
#define LOWEST_i8 (-128l)
#define LOWEST_i16 (-32768l)
#define LOWEST_i32 ((long)INT_MIN)
#define LOWEST_i64 LONG_MIN
#define LOWEST_u8 0ul
#define LOWEST_u16 0ul
#define LOWEST_u32 0ul
#define LOWEST_u64 0ul
#define HIGHEST_f32 INFINITY
#define HIGHEST_f16 INFINITY
#define HIGHEST_bf16 INFINITY
#define HIGHEST_f64 ((double)INFINITY)
#define HIGHEST_i8 127l
#define HIGHEST_i16 32767l
#define HIGHEST_i32 ((long)INT_MAX)
#define HIGHEST_i64 LONG_MAX
#define HIGHEST_u8 255ul
#define HIGHEST_u16 65535ul
#define HIGHEST_u32 ((ulong)UINT_MAX)
#define HIGHEST_u64 ULONG_MAX

// Signed numbers wrap as unsigned ones do.
#define ADD_f(a, b) ((a) + (b))
#define ADD_d(a, b) ((a) + (b))
#define ADD_l(a, b) as_long(as_ulong(a) + as_ulong(b))
#define ADD_u(a, b) ((a) + (b))
#define MUL_f(a, b) ((a) * (b))
#define MUL_d(a, b) ((a) * (b))
#define MUL_l(a, b) as_long(as_ulong(a) * as_ulong(b))
#define MUL_u(a, b) ((a) * (b))
#define ABS_f(a) fabs(a)
#define ABS_d(a) fabs(a)
#define ABS_l(a) ((a) < 0 ? as_long(0ul - as_ulong(a)) : (a))
#define ABS_u(a) (a)
#define ADD(a, b) CAT(ADD_, C)(a, b)
#define MUL(a, b) CAT(MUL_, C)(a, b)
#define ABS(a) CAT(ABS_, C)(a)

#define START_Sum ((ACC)0)
#define START_Mean ((ACC)0)
#define START_Max CAT(LOWEST_, T)
#define START_Min CAT(HIGHEST_, T)
#define START_Prod ((ACC)1)
#define START_All ((ACC)1)
#define START_Any ((ACC)0)
#define START_L1 ((ACC)0)
#define START_L2 ((ACC)0)
#define START_LogSum ((ACC)0)
#define START_SumSquare ((ACC)0)
#define START_LogSumExp ((ACC)0)

#define JOIN_Sum(a, b) ADD(a, b)
#define JOIN_Mean(a, b) ADD(a, b)
#define JOIN_Max(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
#define JOIN_Min(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
#define JOIN_Prod(a, b) MUL(a, b)
#define JOIN_All(a, b) ((a) & (b))
#define JOIN_Any(a, b) ((a) | (b))
#define JOIN_L1(a, b) ADD(a, b)
#define JOIN_L2(a, b) ADD(a, b)
#define JOIN_LogSum(a, b) ADD(a, b)
#define JOIN_SumSquare(a, b) ADD(a, b)
#define JOIN_LogSumExp(a, b) ADD(a, b)

#define MAP_Sum(v) (v)
#define MAP_Mean(v) (v)
#define MAP_Max(v) (v)
#define MAP_Min(v) (v)
#define MAP_Prod(v) (v)
#define MAP_All(v) (v)
#define MAP_Any(v) (v)
#define MAP_L1(v) ABS(v)
#define MAP_L2(v) MUL(v, v)
#define MAP_LogSum(v) (v)
#define MAP_SumSquare(v) MUL(v, v)
#define MAP_LogSumExp(v) exp((v) - largest)

#define FINISH_Sum(v) (v)
#define FINISH_Mean(v) ((v) / (ACC)n)
#define FINISH_Max(v) (v)
#define FINISH_Min(v) (v)
#define FINISH_Prod(v) (v)
#define FINISH_All(v) (v)
#define FINISH_Any(v) (v)
#define FINISH_L1(v) (v)
#define FINISH_L2(v) sqrt(v)
#define FINISH_LogSum(v) log(v)
#define FINISH_SumSquare(v) (v)
// An infinite or NaN maximum is the result.
#define FINISH_LogSumExp(v) (largest - largest == 0 ? largest + log(v) : largest)

// A name of a kind's macro; apart from CAT, which those use themselves.
#define OF_KIND_(name, kind) name##kind
#define OF_KIND(name, kind) OF_KIND_(name, kind)
#define START OF_KIND(START_, KIND)
#define JOIN(a, b) OF_KIND(JOIN_, KIND)(a, b)
#if MAPS
#define MAP(v) OF_KIND(MAP_, KIND)(v)
#else
#define MAP(v) (v)
#endif
#if FINISHES
#define FINISH(v) OF_KIND(FINISH_, KIND)(v)
#else
#define FINISH(v) (v)
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void reduce(__global const MEM(T)* restrict x, __global MEM(TO)* restrict y,
#if SHIFTED
            __global const ACC* restrict shift,
#endif
            const IDX outputs, const IDX k0, const IDX k1, const IDX k2, const IDX s0, const IDX s1,
            const IDX s2, const IDX s3, const IDX count, const IDX r0, const IDX r1, const IDX r2,
            const IDX t0, const IDX t1, const IDX t2, const IDX t3, const IDX piece, const IDX pieces,
            const IDX n) {
  const int id = get_local_id(0), gx = id % GX, gy = id / GX;
  const IDX o = (IDX)get_group_id(0) * GX + gx, p = get_group_id(1);
  ACC total = START;
#if SHIFTED
  const ACC largest = o < outputs ? shift[o] : (ACC)0;
#endif
  if (o < outputs) {
    IDX base = 0, rest = o;
#if KEPT > 1
    base += rest % k0 * s0, rest /= k0;
#endif
#if KEPT > 2
    base += rest % k1 * s1, rest /= k1;
#endif
#if KEPT > 3
    base += rest % k2 * s2, rest /= k2;
#endif
    base += rest * (KEPT == 1 ? s0 : KEPT == 2 ? s1 : KEPT == 3 ? s2 : KEPT == 4 ? s3 : 0);
    const IDX end = min((IDX)((p + 1) * piece), count);
    for (IDX first = p * piece + gy; first < end; first += GY * BLOCK) {
      const IDX stop = min((IDX)(first + GY * BLOCK), end);
      ACC sum = START;
      for (IDX r = first; r < stop; r += GY) {
        IDX at = base, left = r;
#if REDUCED > 1
        at += left % r0 * t0, left /= r0;
#endif
#if REDUCED > 2
        at += left % r1 * t1, left /= r1;
#endif
#if REDUCED > 3
        at += left % r2 * t2, left /= r2;
#endif
        at += left * (REDUCED == 1 ? t0 : REDUCED == 2 ? t1 : REDUCED == 3 ? t2 : REDUCED == 4 ? t3 : 0);
        const ACC v = LOAD(T, x, at);
        sum = JOIN(sum, MAP(v));
      }
      total = JOIN(total, sum);
    }
  }
#if GY > 1
  __local ACC tmp[GROUP];
  tmp[id] = total;
  for (int rest = GY / 2; rest > 0; rest /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (gy < rest) tmp[id] = JOIN(tmp[id], tmp[id + rest * GX]);
  }
  total = tmp[id];
#endif
  if (o < outputs && gy == 0) STORE(TO, y, o * pieces + p, FINISH(total));
}
