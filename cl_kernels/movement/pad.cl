// pad: each element of y is one of x or the pad value. Of each of AXES axes, n is the size in y,
// `before` the number of pads, [s, s + k) the part of x that stays, d its stride in x.
// One work-item per T, which may be a vector of E along the innermost axis. MODE: 0 constant,
// 1 reflect, 2 symmetric, 3 edge, 4 wrap. With VALUE the pad value is value[0], else zero.
// VARIANT: -DT=uint -DE=uint -DI=int -DAXES=2 -DMODE=0 -DVALUE=1
// VARIANT: -DT=uint4 -DE=uint -DI=int -DAXES=3 -DMODE=0 -DVALUE=1
// VARIANT: -DT=uchar -DE=uchar -DI=long -DAXES=8 -DMODE=1 -DVALUE=0
// VARIANT: -DT=ushort -DE=ushort -DI=int -DAXES=4 -DMODE=2 -DVALUE=0
// VARIANT: -DT=ulong -DE=ulong -DI=int -DAXES=1 -DMODE=3 -DVALUE=0
// VARIANT: -DT=ulong -DE=ulong -DI=int -DAXES=1 -DMODE=4 -DVALUE=0
#include "common/axes.clh"

#define PARAMS(i) const I n##i, const I before##i, const I s##i, const I k##i, const I d##i,

I modulo(I a, I period) {
  const I rest = a % period;
  return rest < 0 ? rest + period : rest;
}

// The place of x, counted from where its part begins, that stands at place i of that part, which
// may lie outside of [0, k).
I source(I i, I k) {
#if MODE == 1
  if (k == 1) return 0;
  i = modulo(i, 2 * k - 2);
  return i < k ? i : 2 * k - 2 - i;
#elif MODE == 2
  i = modulo(i, 2 * k);
  return i < k ? i : 2 * k - 1 - i;
#elif MODE == 3
  return clamp(i, (I)0, k - 1);
#elif MODE == 4
  return modulo(i, k);
#else
  return i;
#endif
}

#define PLACE(i)                                         \
  {                                                      \
    const I a = r % n##i - before##i;                    \
    r /= n##i;                                           \
    const bool within = a >= 0 && a < k##i;              \
    inside = inside && within;                           \
    from += (s##i + (within ? a : source(a, k##i))) * d##i; \
  }

__kernel void pad(__global const T* restrict x, __global T* restrict y,
                  __global const E* restrict value, EACH(AXES, PARAMS) const I elements) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  I r = i, from = 0;
  bool inside = true;
  EACH(AXES, PLACE)
#if MODE == 0
#if VALUE
  y[i] = inside ? x[from] : (T)(value[0]);
#else
  y[i] = inside ? x[from] : (T)(0);
#endif
#else
  y[i] = x[from];
#endif
}
