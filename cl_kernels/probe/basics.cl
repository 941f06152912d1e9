// Probe of what every kernel of the backend relies on. Inputs come from the host, so that nothing
// can be folded while compiling.
// int64_ops: out[0..4] = a * b, a / b, a >> 3, (long)(a < b), in[2] (a load and a store); in[3].
// group_sum: out[group] = sum of in[] over the group, by a tree in local memory; any group size
//   that is a power of two.
// count_trips: out[0] = number of times a loop of n trips ran.
// VARIANT:
__kernel void int64_ops(__global const long* restrict in, __global long* restrict out) {
  const long a = in[0], b = in[1];
  out[0] = a * b;
  out[1] = a / b;
  out[2] = a >> 3;
  out[3] = a < b;
  out[4] = in[2];
}

__kernel void group_sum(__global const int* restrict in, __global int* restrict out,
                        __local int* tmp) {
  const int lid = get_local_id(0);
  tmp[lid] = in[get_global_id(0)];
  for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < s) tmp[lid] += tmp[lid + s];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid == 0) out[get_group_id(0)] = tmp[0];
}

__kernel void count_trips(__global const int* restrict in, __global int* restrict out,
                          const int n) {
  int count = 0;
  for (int i = 0; i < n; ++i) count += in[i & 7];
  out[0] = count;
}
