// range: y[i] = start + i * delta for i < n. KIND 0: integers, which wrap; 1: floating point that is
// computed as float, whose bits start and delta are; 2: as double.
// VARIANT: -DTYPE=i32 -DKIND=0
// VARIANT: -DTYPE=bf16 -DKIND=1
// VARIANT: -DTYPE=f32 -DKIND=1
#include "common/dtype.clh"

__kernel void range(__global MEM(TYPE)* restrict y, const long n, const ulong start,
                    const ulong delta) {
  const long i = get_global_id(0);
  if (i >= n) return;
#if KIND == 1
  STORE(TYPE, y, i, fma((float)i, as_float((uint)delta), as_float((uint)start)));
#elif KIND == 2
  STORE(TYPE, y, i, fma((double)i, as_double(delta), as_double(start)));
#else
  STORE(TYPE, y, i, start + (ulong)i * delta);
#endif
}
