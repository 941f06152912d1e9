// batch_norm: y = (x - mean) / sqrt(variance + epsilon) * scale + offset with one number per channel
// each; x is [outer, channels, inner]. One work-item per element.
// T: dtype of x and y; S, O, M, V: of scale, offset, mean, variance. Computed in float, f64 in double.
// VARIANT: -DT=f32 -DS=f32 -DO=f32 -DM=f32 -DV=f32 -DGROUP=64 -DIDX=int
// VARIANT: -DT=f16 -DS=f32 -DO=f32 -DM=bf16 -DV=f32 -DGROUP=64 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void batch_norm(__global const MEM(T)* x, __global MEM(T)* y, __global const MEM(S)* restrict scale,
                __global const MEM(O)* restrict offset, __global const MEM(M)* restrict mean,
                __global const MEM(V)* restrict variance, const IDX elements, const IDX channels,
                const IDX inner, const float epsilon) {
  const IDX i = get_global_id(0);
  if (i >= elements) return;
  const IDX c = i / inner % channels;
  const ACC factor = (ACC)LOAD(S, scale, c) / sqrt((ACC)LOAD(V, variance, c) + (ACC)epsilon);
  const ACC v = LOAD(T, x, i);
  STORE(T, y, i, (v - (ACC)LOAD(M, mean, c)) * factor + (ACC)LOAD(O, offset, c));
}
