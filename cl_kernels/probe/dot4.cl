// Probe of common/dot4.clh: work-item i writes out[i] = dot4(in[3 i], in[3 i + 1], in[3 i + 2]).
// VARIANT:
// VARIANT: -DDOT_KHR
// VARIANT: -DDOT_PTX
#include "common/dot4.clh"
__kernel void dot4_words(__global const int* restrict in, __global int* restrict out) {
  const int i = get_global_id(0);
  out[i] = dot4((uint)in[3 * i], (uint)in[3 * i + 1], in[3 * i + 2]);
}
