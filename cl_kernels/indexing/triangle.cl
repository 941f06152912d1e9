// triangle: y = x on one side of the k-th diagonal of each matrix of rows x columns, zero on the
// other. eye: one on the k-th diagonal, zero elsewhere. One work-item per element of y.
// VARIANT: -DT=uint -DI=int -DUPPER=1 -DTYPE=f32
// VARIANT: -DT=uchar -DI=long -DUPPER=0 -DTYPE=bool
#include "common/dtype.clh"

__kernel void triangle(__global const T* restrict x, __global T* restrict y, const I elements,
                       const I rows, const I columns, const I k) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const I beyond = i % columns - i / columns % rows;  // diagonals right of the main one
#if UPPER
  y[i] = beyond >= k ? x[i] : (T)(0);
#else
  y[i] = beyond <= k ? x[i] : (T)(0);
#endif
}

__kernel void eye(__global MEM(TYPE)* restrict y, const I elements, const I columns, const I k) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  STORE(TYPE, y, i, i % columns - i / columns == k ? 1.0f : 0.0f);
}
