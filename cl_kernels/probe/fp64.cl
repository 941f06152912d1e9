// Probe of double arithmetic: out = {a + b, a * b, a / b, fma(a, b, -a * b rounded)}; in[2].
// VARIANT:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void fp64_ops(__global const double* restrict in, __global double* restrict out) {
  const double a = in[0], b = in[1];
  out[0] = a + b;
  out[1] = a * b;
  out[2] = a / b;
  out[3] = fma(a, b, -out[1]);
}
