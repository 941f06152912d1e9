// Probe of sub-groups of LANES neighbouring work-items (a define): a block read, a block read of four, and
// values of single lanes that all see. With b = in + LANES, lane l of each sub-group writes, from out[4 * its
// work-item] on, in[l]; b[l] + b[3 LANES + l]; in[LANES - 1 - l % 2]; l.
// VARIANT: -DLANES=8
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
__kernel __attribute__((intel_reqd_sub_group_size(LANES))) void sub_groups(
    __global const float* restrict in, __global float* restrict out) {
  const int lane = get_local_id(0) % LANES, first = get_local_id(0) - lane;
  const float u = as_float(intel_sub_group_block_read((__global const uint*)in));
  const float4 v = as_float4(intel_sub_group_block_read4((__global const uint*)(in + LANES)));
  const float even = intel_sub_group_shuffle(u, LANES - 1), odd = intel_sub_group_shuffle(u, LANES - 2);
  __global float* to = out + 4 * (first + lane);
  to[0] = u;
  to[1] = v.x + v.w;
  to[2] = lane % 2 == 0 ? even : odd;
  to[3] = (float)lane;
}
