// one_hot: y[outer, depth, inner] = values[1] where the place along depth is the index at [outer,
// inner], else values[0]. With NEGATIVE, negative indices count from the end; an index out of range
// is nowhere. One work-item per element of y.
// VARIANT: -DT=uint -DI=int -DINDEX=i64 -DNEGATIVE=0
// VARIANT: -DT=uchar -DI=long -DINDEX=u8 -DNEGATIVE=1
#include "common/dtype.clh"
#include "common/index.clh"

__kernel void one_hot(__global const MEM(INDEX)* restrict indices,
                      __global const T* restrict values, __global T* restrict y, const I elements,
                      const I depth, const I inner) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const I row = i / inner;
  long at = READ_INDEX(INDEX, indices, row / depth * inner + i % inner);
#if NEGATIVE
  if (at < 0) at += depth;
#endif
  y[i] = values[at == row % depth ? 1 : 0];
}
