// scatter_mark, scatter_write, scatter_ordered: updates are put into y, which already holds x. An
// update is a row of `inner` elements; its place among the rows of y comes from a tuple of indices
// (ELEMENTS 0: AXES of them, the last axis first) or from its own place and one index (ELEMENTS 1:
// AXES axes of sizes n, strides s in y, 0 for the picked axis, which is number `size`, `step`).
// TYPE is the dtype, T an integer of its size, INDEX the dtype of indices, I the type of places.
// An index out of range is reported and its update left out. The result does not depend on timing:
//   without a reduction the last update wins: scatter_mark notes for each row of y the number of
//   its last update (`last` begins as -1; one work-item per update), scatter_write writes those
//   (one work-item per element of the updates);
//   with REDUCTION 1 add, 2 mul, 3 max, 4 min: scatter_ordered has one work-item per element of a
//   row and class of rows (`classes` of them); each goes through all updates in order.
// VARIANT: -DT=uint -DTYPE=f32 -DI=int -DINDEX=i32 -DAXES=1 -DELEMENTS=0 -DNEGATIVE=1 -DREDUCTION=0
// VARIANT: -DT=ushort -DTYPE=f16 -DI=int -DINDEX=i64 -DAXES=2 -DELEMENTS=0 -DNEGATIVE=0 -DREDUCTION=1
// VARIANT: -DT=uint -DTYPE=i32 -DI=long -DINDEX=u64 -DAXES=8 -DELEMENTS=1 -DNEGATIVE=1 -DREDUCTION=2
// VARIANT: -DT=ulong -DTYPE=i64 -DI=int -DINDEX=i64 -DAXES=3 -DELEMENTS=1 -DNEGATIVE=1 -DREDUCTION=3
// VARIANT: -DT=uchar -DTYPE=u8 -DI=int -DINDEX=i64 -DAXES=0 -DELEMENTS=0 -DNEGATIVE=1 -DREDUCTION=4
#include "common/axes.clh"
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/index.clh"

#define PARAMS(i) const long n##i, const long s##i,
#if ELEMENTS
#define SHAPE_PARAMS EACH(AXES, PARAMS) const long size, const long step
#define PLACE(i) to += (r % n##i) * s##i; r /= n##i;
// Leaves the row of update u in `to`, or -1.
#define FIND(u)                                \
  long to = 0, r = (u);                        \
  long at = READ_INDEX(INDEX, indices, u);     \
  if (NEGATIVE && at < 0) at += size;          \
  EACH(AXES, PLACE)                            \
  to = at < 0 || at >= size ? -1 : to + at * step;
#else
#define SHAPE_PARAMS EACH(AXES, PARAMS) const long unused, const long unused_too
#define PLACE(i)                                                        \
  {                                                                     \
    long at = READ_INDEX(INDEX, indices, (long)(u_) * AXES + (AXES - 1 - i)); \
    if (NEGATIVE && at < 0) at += n##i;                                 \
    good = good && at >= 0 && at < n##i;                                \
    to += at * s##i;                                                    \
  }
#define FIND(u)            \
  long to = 0;             \
  bool good = true;        \
  const long u_ = (u);     \
  (void)u_;                \
  EACH(AXES, PLACE)        \
  if (!good) to = -1;
#endif

__kernel void scatter_mark(__global const MEM(INDEX)* restrict indices,
                           __global volatile int* restrict last, const I updates, SHAPE_PARAMS,
                           ERROR_PARAMS) {
  const I u = get_global_id(0);
  if (u >= updates) return;
  FIND(u)
  if (to < 0) {
    REPORT(ERROR_INDEX);
  } else {
    atomic_max(last + to, (int)u);
  }
}

__kernel void scatter_write(__global const MEM(INDEX)* restrict indices,
                            __global const int* restrict last,
                            __global const T* restrict values, __global T* restrict y,
                            const I elements, const I inner, SHAPE_PARAMS) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const I u = i / inner;
  FIND(u)
  if (to >= 0 && last[to] == (int)u) y[to * inner + i % inner] = values[i];
}

// Integers wrap, so they are added and multiplied as unsigned ones.
#if REDUCTION == 1
#define REDUCED(a, b) ((a) + (b))
#elif REDUCTION == 2
#define REDUCED(a, b) ((a) * (b))
#elif REDUCTION == 3
#define REDUCED(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#else
#define REDUCED(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#endif
#if REDUCTION == 1 || REDUCTION == 2
#define VALUE_i8 ulong
#define VALUE_i16 ulong
#define VALUE_i32 ulong
#define VALUE_i64 ulong
#else
#define VALUE_i8 long
#define VALUE_i16 long
#define VALUE_i32 long
#define VALUE_i64 long
#endif
#define VALUE_u8 ulong
#define VALUE_u16 ulong
#define VALUE_u32 ulong
#define VALUE_u64 ulong
#define VALUE_bool ulong
#define VALUE_f16 float
#define VALUE_bf16 float
#define VALUE_f32 float
#define VALUE_f64 double
#define VALUE(type) CAT(VALUE_, type)

__kernel void scatter_ordered(__global const MEM(INDEX)* restrict indices,
                              __global const MEM(TYPE)* restrict values,
                              __global MEM(TYPE)* restrict y, const I updates, const I inner,
                              const long classes, SHAPE_PARAMS, ERROR_PARAMS) {
  // A row without elements still has its indices checked.
  const long width = inner > 0 ? inner : 1;
  const long j = (long)get_global_id(0) % width, mine = (long)get_global_id(0) / width;
  if (mine >= classes) return;
  for (I u = 0; u < updates; ++u) {
    FIND(u)
    if (to < 0) {
      REPORT(ERROR_INDEX);
      return;
    }
    if (inner == 0 || to % classes != mine) continue;
    const VALUE(TYPE) a = LOAD(TYPE, y, to * inner + j);
    const VALUE(TYPE) b = LOAD(TYPE, values, (long)u * inner + j);
    STORE(TYPE, y, to * inner + j, REDUCED(a, b));
  }
}
