// group_norm: x is [samples, places, channels]; the channels of a sample in groups of `width`, each
// normalised by its own mean and variance over its channels and all places, then scaled and offset
// per channel. One group of work-items per sample and group of channels; width 1 is instance norm.
// T, S, O: dtypes of x and y, scale, offset. Computed in float, f64 in double; sums of long sets run
// over 256 elements before they are added to each other.
// VARIANT: -DT=f32 -DS=f32 -DO=f32 -DGROUP=64 -DIDX=int
// VARIANT: -DT=bf16 -DS=f32 -DO=f16 -DGROUP=1 -DIDX=long
#include "common/dtype.clh"
#include "common/group.clh"

#define ACC CARRY(T)
#define BLOCK 256
DEFINE_GROUP_JOIN(group_sum, ACC, PLUS)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void group_norm(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                __global const MEM(S)* restrict scale, __global const MEM(O)* restrict offset,
                const IDX places, const IDX channels, const IDX width, const float epsilon) {
  __local ACC tmp[GROUP];
  const int id = get_local_id(0);
  const IDX groups = channels / width, n = places * width;
  const IDX channel = (IDX)get_group_id(0) % groups * width;
  const IDX base = (IDX)get_group_id(0) / groups * places * channels + channel;
  ACC mean = 0, square = 0;
  for (IDX first = id; first < n; first += GROUP * BLOCK) {
    const IDX stop = min((IDX)(first + GROUP * BLOCK), n);
    ACC sum = 0;
    for (IDX k = first; k < stop; k += GROUP) {
      sum += LOAD(T, x, base + k / width * channels + k % width);
    }
    mean += sum;
  }
  mean = group_sum(mean, tmp) / n;
  for (IDX first = id; first < n; first += GROUP * BLOCK) {
    const IDX stop = min((IDX)(first + GROUP * BLOCK), n);
    ACC sum = 0;
    for (IDX k = first; k < stop; k += GROUP) {
      const ACC v = LOAD(T, x, base + k / width * channels + k % width) - mean;
      sum += v * v;
    }
    square += sum;
  }
  const ACC factor = 1 / sqrt(group_sum(square, tmp) / n + epsilon);
  for (IDX k = id; k < n; k += GROUP) {
    const IDX c = k % width, at = base + k / width * channels + c;
    const ACC v = (LOAD(T, x, at) - mean) * factor;
    STORE(T, y, at, v * (ACC)LOAD(S, scale, channel + c) + (ACC)LOAD(O, offset, channel + c));
  }
}
