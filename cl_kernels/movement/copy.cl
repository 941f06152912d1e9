// copy: y[i] = x[i] for i < n, elements of T moved as they are.
// One work-item per element; the global size may be larger than n.
// VARIANT: -DT=uchar
// VARIANT: -DT=uint4
__kernel void copy(__global const T* restrict x, __global T* restrict y, const long n) {
  const long i = get_global_id(0);
  if (i < n) y[i] = x[i];
}
