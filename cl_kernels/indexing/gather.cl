// gather, gather_elements, gather_nd: y picks elements of x by indices in a tensor. T is the element
// (gather and gather_nd move rows, which may be cut into wide ones), INDEX the dtype of indices,
// I the type of places. An index out of range is reported and nothing is read or written for it.
// With NEGATIVE, negative ones count from the end. One work-item per T of y.
// VARIANT: -DT=uint -DI=int -DINDEX=i32 -DNEGATIVE=1 -DAXES=1
// VARIANT: -DT=uint4 -DI=int -DINDEX=i64 -DNEGATIVE=0 -DAXES=3
// VARIANT: -DT=uchar -DI=long -DINDEX=u64 -DNEGATIVE=1 -DAXES=8
#include "common/axes.clh"
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/index.clh"

// x as [batch, outer, size, inner], indices as [batch, count].
__kernel void gather(__global const T* restrict x, __global const MEM(INDEX)* restrict indices,
                     __global T* restrict y, const I elements, const I outer, const long size,
                     const I inner, const I count, ERROR_PARAMS) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const I row = i / inner, slice = row / count;
  long at = READ_INDEX(INDEX, indices, slice / outer * count + row % count);
#if NEGATIVE
  if (at < 0) at += size;
#endif
  if (at < 0 || at >= size) {
    REPORT(ERROR_INDEX);
    return;
  }
  y[i] = x[((long)slice * size + at) * inner + i % inner];
}

// indices has AXES axes of sizes n; s are x's strides along them, 0 for the axis that is picked
// from, which has `size` elements with stride `step`.
#define ELEMENT_PARAMS(i) const I n##i, const long s##i,
#define ELEMENT_PLACE(i) from += (r % n##i) * s##i; r /= n##i;

__kernel void gather_elements(__global const T* restrict x,
                              __global const MEM(INDEX)* restrict indices, __global T* restrict y,
                              EACH(AXES, ELEMENT_PARAMS) const I elements, const long size,
                              const long step, ERROR_PARAMS) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  long at = READ_INDEX(INDEX, indices, i);
  if (at < 0) at += size;
  if (at < 0 || at >= size) {
    REPORT(ERROR_INDEX);
    return;
  }
  long from = at * step;
  I r = i;
  EACH(AXES, ELEMENT_PLACE)
  y[i] = x[from];
}

// Each tuple of AXES indices names a row of `inner` elements, `batch_step` further on after every
// `per_batch` tuples. size and step belong to the axes of x, the last one first.
#define ND_PARAMS(i) const long size##i, const long step##i,
#define ND_PLACE(i)                                               \
  {                                                               \
    long at = READ_INDEX(INDEX, indices, tuple * AXES + (AXES - 1 - i)); \
    if (NEGATIVE && at < 0) at += size##i;                        \
    good = good && at >= 0 && at < size##i;                       \
    from += at * step##i;                                         \
  }

__kernel void gather_nd(__global const T* restrict x, __global const MEM(INDEX)* restrict indices,
                        __global T* restrict y, EACH(AXES, ND_PARAMS) const I elements,
                        const I inner, const I per_batch, const long batch_step, ERROR_PARAMS) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const long tuple = i / inner;
  long from = tuple / per_batch * batch_step + i % inner;
  bool good = true;
  EACH(AXES, ND_PLACE)
  if (!good) {
    REPORT(ERROR_INDEX);
    return;
  }
  y[i] = x[from];
}
