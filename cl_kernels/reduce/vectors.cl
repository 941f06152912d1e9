// Reductions of f32, f16 and bf16 (T; TO: what y holds) for devices that want one work-item with
// vectors of V lanes; sets, axes, pieces, MAPS and FINISHES as in reduce/reduce.cl. KIND: Sum Mean Max Min
// L1 L2 LogSum SumSquare. Sums run over 256 vectors before they are added to each other.
//
// reduce_columns: outputs lie side by side in x (s0 is 1); a work-item takes V of them.
// reduce_lines: elements of a set lie side by side in x (t0 is 1); a work-item takes an output.
// Axis 1 of the work-items counts pieces.
// VARIANT: -DT=f32 -DTO=f32 -DKIND=Mean -DMAPS=1 -DFINISHES=1 -DKEPT=1 -DREDUCED=1 -DV=16 -DIDX=int
// VARIANT: -DT=f32 -DTO=f32 -DKIND=Max -DMAPS=1 -DFINISHES=1 -DKEPT=2 -DREDUCED=2 -DV=16 -DIDX=int
// VARIANT: -DT=bf16 -DTO=f32 -DKIND=L2 -DMAPS=1 -DFINISHES=0 -DKEPT=4 -DREDUCED=4 -DV=4 -DIDX=long
// VARIANT: -DT=f16 -DTO=f16 -DKIND=LogSum -DMAPS=1 -DFINISHES=1 -DKEPT=0 -DREDUCED=1 -DV=8 -DIDX=int
#include "common/vector.clh"
#define BLOCK 256

#define START_Sum 0
#define START_Mean 0
#define START_Max (-INFINITY)
#define START_Min INFINITY
#define START_L1 0
#define START_L2 0
#define START_LogSum 0
#define START_SumSquare 0
#define JOIN_Sum(a, b) ((a) + (b))
#define JOIN_Mean(a, b) ((a) + (b))
// NaN wins.
#define JOIN_Max(a, b) ((((a) != (a)) | ((a) > (b))) ? (a) : (b))
#define JOIN_Min(a, b) ((((a) != (a)) | ((a) < (b))) ? (a) : (b))
#define JOIN_L1(a, b) ((a) + (b))
#define JOIN_L2(a, b) ((a) + (b))
#define JOIN_LogSum(a, b) ((a) + (b))
#define JOIN_SumSquare(a, b) ((a) + (b))
#define MAP_Sum(v) (v)
#define MAP_Mean(v) (v)
#define MAP_Max(v) (v)
#define MAP_Min(v) (v)
#define MAP_L1(v) fabs(v)
#define MAP_L2(v) ((v) * (v))
#define MAP_LogSum(v) (v)
#define MAP_SumSquare(v) ((v) * (v))
#define FINISH_Sum(v) (v)
#define FINISH_Mean(v) ((v) / (float)n)
#define FINISH_Max(v) (v)
#define FINISH_Min(v) (v)
#define FINISH_L1(v) (v)
#define FINISH_L2(v) sqrt(v)
#define FINISH_LogSum(v) log(v)
#define FINISH_SumSquare(v) (v)
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

// Step i of several that lie in axes of sizes a0.. and steps b0.., the first of which is cut off.
#define PLACE(AXES, at, rest, a0, a1, a2, b0, b1, b2, b3)                               \
  if (AXES > 1) at += rest % a0 * b0, rest /= a0;                                       \
  if (AXES > 2) at += rest % a1 * b1, rest /= a1;                                       \
  if (AXES > 3) at += rest % a2 * b2, rest /= a2;                                       \
  at += rest * (AXES == 1 ? b0 : AXES == 2 ? b1 : AXES == 3 ? b2 : AXES == 4 ? b3 : 0);

#define PARAMS                                                                                  \
  __global const MEM(T)* restrict x, __global MEM(TO)* restrict y, const IDX outputs,          \
      const IDX k0, const IDX k1, const IDX k2, const IDX s0, const IDX s1, const IDX s2,       \
      const IDX s3, const IDX count, const IDX r0, const IDX r1, const IDX r2, const IDX t0,    \
      const IDX t1, const IDX t2, const IDX t3, const IDX piece, const IDX pieces, const IDX n

// y of V neighbouring outputs `o`, or of one, from x at `base`.
#define REDUCE_SET(type, LOADED)                                                      \
  type total = START;                                                                 \
  for (IDX block = begin; block < end; block += BLOCK) {                              \
    const IDX stop = min((IDX)(block + BLOCK), end);                                  \
    type sum = START;                                                                 \
    for (IDX r = block; r < stop; ++r) {                                              \
      IDX at = base, left = r;                                                        \
      PLACE(REDUCED, at, left, r0, r1, r2, t0, t1, t2, t3)                            \
      const type v = LOADED(x + at);                                                  \
      sum = JOIN(sum, MAP(v));                                                        \
    }                                                                                 \
    total = JOIN(total, sum);                                                         \
  }                                                                                   \
  total = FINISH(total);
#define LOAD_ONE(p) LOAD(T, p, 0)

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void reduce_columns(PARAMS) {
  // Vectors do not go beyond the innermost axis.
  const IDX width = KEPT == 1 ? outputs : k0, vectors = (width + V - 1) / V;
  const IDX item = get_global_id(0), column = item % vectors * V, row = item / vectors;
  const IDX begin = (IDX)get_global_id(1) * piece, end = min((IDX)(begin + piece), count);
  IDX base = 0, rest = row * width;
  PLACE(KEPT, base, rest, k0, k1, k2, s0, s1, s2, s3)
  base += column;
  const IDX o = row * width + column, there = min((IDX)V, width - column);
  if (there == V) {
    REDUCE_SET(VF, VLOAD)
    float lanes[V];
    ACT_CAT(vstore, V)(total, 0, lanes);
    if (pieces == 1 && FINISHES) {
      CAT(VSTORE_, TO)(total, y + o);
    } else {
      for (int i = 0; i < V; ++i) STORE(TO, y, (o + i) * pieces + get_global_id(1), lanes[i]);
    }
  } else {
    for (int i = 0; i < there; ++i, ++base) {
      REDUCE_SET(float, LOAD_ONE)
      STORE(TO, y, (o + i) * pieces + get_global_id(1), total);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void reduce_lines(PARAMS) {
  const IDX o = get_global_id(0), p = get_global_id(1);
  const IDX begin = p * piece, end = min((IDX)(begin + piece), count);
  const IDX run = REDUCED == 1 ? count : r0;
  IDX base = 0, rest = o;
  PLACE(KEPT, base, rest, k0, k1, k2, s0, s1, s2, s3)
  VF total = START;
  float single = START;
  for (IDX r = begin; r < end;) {
    IDX at = base, left = r;
    PLACE(REDUCED, at, left, r0, r1, r2, t0, t1, t2, t3)
    const IDX length = min((IDX)(run - r % run), end - r), whole = length - length % V;
    for (IDX block = 0; block < whole; block += BLOCK * V) {
      const IDX stop = min((IDX)(block + BLOCK * V), whole);
      VF sum = START;
      for (IDX k = block; k < stop; k += V) {
        const VF v = VLOAD(x + at + k);
        sum = JOIN(sum, MAP(v));
      }
      total = JOIN(total, sum);
    }
    for (IDX k = whole; k < length; ++k) {
      const float v = LOAD(T, x, at + k);
      single = JOIN(single, MAP(v));
    }
    r += length;
  }
  float lanes[V];
  ACT_CAT(vstore, V)(total, 0, lanes);
  for (int half_ = V / 2; half_ > 0; half_ /= 2) {
    for (int i = 0; i < half_; ++i) lanes[i] = JOIN(lanes[i], lanes[i + half_]);
  }
  const float all = JOIN(lanes[0], single);
  STORE(TO, y, o * pieces + p, FINISH(all));
}
