// Probe of half arithmetic: out = {a + b, a * b, sqrt(a), (half)(float)b}; in[2].
// VARIANT:
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void fp16_ops(__global const half* restrict in, __global half* restrict out) {
  const half a = in[0], b = in[1];
  out[0] = a + b;
  out[1] = a * b;
  out[2] = sqrt(a);
  out[3] = (half)(float)b;
}
