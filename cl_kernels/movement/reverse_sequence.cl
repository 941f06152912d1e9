// reverse_sequence: x as [outer, p, middle, q, inner], where p is the time axis and q the batch axis,
// or the other way round when BATCH_FIRST; the first lengths[b] times are reversed. A length out of
// range is reported and nothing is written for it. One work-item per element.
// VARIANT: -DT=uint -DI=int -DBATCH_FIRST=0 -DINDEX=i64
// VARIANT: -DT=uchar -DI=long -DBATCH_FIRST=1 -DINDEX=u64
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/index.clh"

__kernel void reverse_sequence(__global const T* restrict x,
                               __global const MEM(INDEX)* restrict lengths, __global T* restrict y,
                               const I elements, const I p, const I middle, const I q,
                               const I inner, ERROR_PARAMS) {
  const I i = get_global_id(0);
  if (i >= elements) return;
  const I row = i / inner;
  const I b = row % q, a = row / q / middle % p;
#if BATCH_FIRST
  const I time = b, batch = a, times = q, stride = inner;
#else
  const I time = a, batch = b, times = p, stride = middle * q * inner;
#endif
  const long length = READ_INDEX(INDEX, lengths, batch);
  if (length < 0 || length > times) {
    REPORT(ERROR_INDEX);
    return;
  }
  const I source = time < length ? (I)length - 1 - time : time;
  y[i] = x[i + (source - time) * stride];
}
