// move: copies a strided box, y[y_start + sum a*t] = x[x_start + sum a*f] for all places a below the
// sizes n of AXES axes. T is the element, I the type of indices; x_offset and y_offset are where the
// operands begin, in elements.
// With FLAT one work-item per element of the box along global axis 0; without it the innermost two
// axes lie along global axes 0 and 1, the others together along 2. Work-items beyond do nothing;
// GROUP of them are a group.
// VARIANT: -DT=uint -DI=int -DAXES=1 -DFLAT=1 -DGROUP=64
// VARIANT: -DT=uint4 -DI=int -DAXES=4 -DFLAT=0 -DGROUP=64
// VARIANT: -DT=uchar -DI=long -DAXES=8 -DFLAT=1 -DGROUP=64
// VARIANT: -DT=ulong -DI=int -DAXES=2 -DFLAT=0 -DGROUP=64
#include "common/axes.clh"

#define PARAMS(i) const I n##i, const I f##i, const I t##i,
#define PLACE(i) { const I a = r % n##i; r /= n##i; from += a * f##i; to += a * t##i; }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void move(__global const T* restrict x, __global T* restrict y, EACH(AXES, PARAMS)
          const I elements, const long x_start, const long y_start, const long x_offset,
          const long y_offset) {
  I from = 0, to = 0;
#if FLAT
  I r = get_global_id(0);
  if (r >= elements) return;
  EACH(AXES, PLACE)
#else
  const I a0 = get_global_id(0), a1 = get_global_id(1);
  I r = get_global_id(2);
  (void)r;
  if (a0 >= n0 || a1 >= n1) return;
  from = a0 * f0 + a1 * f1;
  to = a0 * t0 + a1 * t1;
  EACH_FROM_2(AXES, PLACE)
#endif
  y[y_offset + y_start + to] = x[x_offset + x_start + from];
}
