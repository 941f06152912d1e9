// fill: y[i] = value for i < n, elements of T. One work-item per element; the global size may be
// larger than n.
// VARIANT: -DT=uchar
// VARIANT: -DT=ulong
__kernel void fill(__global T* restrict y, const long n, const long value) {
  const long i = get_global_id(0);
  if (i < n) y[i] = (T)value;
}
