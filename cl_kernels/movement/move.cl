// move: a strided box, y[to + sum a_i * t_i] = x[from + sum a_i * f_i] for all a_i < n_i.
// transpose: the same where axis 0 is the box's innermost in y and axis 1 in x: tiles of TILE x TILE,
//   through local memory where USE_LOCAL, so that both sides are touched in whole lines.
// x, y: elements of T, moved as they are. RANK axes, innermost of y first. IDX: int or long.
// move, FLAT 1: one work-item per element along axis 0 of the grid. FLAT 0: axes 0 and 1 of the box
// are those of the grid, the others share its third; transpose: so too. UNIT 1: f0 and t0 are 1.
// VARIANT: -DT=uint -DIDX=int -DRANK=1 -DFLAT=1 -DUNIT=1 -DGROUP=64 -DTILE=16 -DUSE_LOCAL=0
// VARIANT: -DT=uchar -DIDX=long -DRANK=8 -DFLAT=1 -DUNIT=0 -DGROUP=64 -DTILE=16 -DUSE_LOCAL=0
// VARIANT: -DT=uint4 -DIDX=int -DRANK=3 -DFLAT=0 -DUNIT=1 -DGROUP=64 -DTILE=16 -DUSE_LOCAL=1
#define AXIS(i) , const IDX n##i, const IDX f##i, const IDX t##i
#define STEP(i)               \
  {                           \
    const IDX a = r % n##i;   \
    r /= n##i;                \
    from += a * f##i;         \
    to += a * t##i;           \
  }
#if RANK > 1
#define AXIS_1 AXIS(1)
#define STEP_1 STEP(1)
#else
#define AXIS_1
#define STEP_1
#endif
#if RANK > 2
#define AXIS_2 AXIS(2)
#define STEP_2 STEP(2)
#else
#define AXIS_2
#define STEP_2
#endif
#if RANK > 3
#define AXIS_3 AXIS(3)
#define STEP_3 STEP(3)
#else
#define AXIS_3
#define STEP_3
#endif
#if RANK > 4
#define AXIS_4 AXIS(4)
#define STEP_4 STEP(4)
#else
#define AXIS_4
#define STEP_4
#endif
#if RANK > 5
#define AXIS_5 AXIS(5)
#define STEP_5 STEP(5)
#else
#define AXIS_5
#define STEP_5
#endif
#if RANK > 6
#define AXIS_6 AXIS(6)
#define STEP_6 STEP(6)
#else
#define AXIS_6
#define STEP_6
#endif
#if RANK > 7
#define AXIS_7 AXIS(7)
#define STEP_7 STEP(7)
#else
#define AXIS_7
#define STEP_7
#endif
#define AXES AXIS(0) AXIS_1 AXIS_2 AXIS_3 AXIS_4 AXIS_5 AXIS_6 AXIS_7
#define OUTER_STEPS STEP_2 STEP_3 STEP_4 STEP_5 STEP_6 STEP_7

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void move(__global const T* restrict x, __global T* restrict y, IDX from, IDX to AXES) {
#if FLAT
  IDX r = get_global_id(0);
  const IDX a0 = r % n0;
  r /= n0;
  STEP_1
  OUTER_STEPS
  if (r > 0) return;
#else
  const IDX a0 = get_global_id(0);
  if (a0 >= n0) return;
#if RANK > 1
  from += (IDX)get_global_id(1) * f1;
  to += (IDX)get_global_id(1) * t1;
#endif
  IDX r = get_global_id(2);
  OUTER_STEPS
#endif
#if UNIT
  y[to + a0] = x[from + a0];
#else
  y[to + a0 * t0] = x[from + a0 * f0];
#endif
}

#if RANK > 1
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(__global const T* restrict x, __global T* restrict y, IDX from, IDX to AXES) {
  IDX r = get_global_id(2);
  OUTER_STEPS
#if USE_LOCAL
  __local T tile[TILE][TILE + 1];
  const int lx = get_local_id(0), ly = get_local_id(1);
  const IDX b0 = get_group_id(0) * TILE, b1 = get_group_id(1) * TILE;
  if (b0 + ly < n0 && b1 + lx < n1) tile[ly][lx] = x[from + (b0 + ly) * f0 + (b1 + lx) * f1];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (b0 + lx < n0 && b1 + ly < n1) y[to + (b0 + lx) * t0 + (b1 + ly) * t1] = tile[lx][ly];
#else
  const IDX a0 = get_global_id(0), a1 = get_global_id(1);
  if (a0 < n0 && a1 < n1) y[to + a0 * t0 + a1 * t1] = x[from + a0 * f0 + a1 * f1];
#endif
}
#endif
