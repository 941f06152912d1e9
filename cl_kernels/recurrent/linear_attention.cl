// linear_attention: a work-item per column of the matrix S [size, depth] that each of `heads` heads of
// a sample keeps, all steps one behind the other. The formulas are those of engine/ops/recurrent.h:
//   S = exp(decay) S (DECAYS), S += key (value - S' key) beta (CORRECTS; else key value),
//   y = scale * S' query, for each of the `readers` heads of queries that read it.
// decay_width, beta_width: numbers of a step; of decay heads or heads * size, of beta heads or 1.
// STARTED: S begins as `start`, else as zero. kept: S in what it is computed in, columns fastest, so
// that neighbours read neighbours. A scale of 0 means 1 / sqrt(size). T: dtype of all but the states, S: theirs; WIDE: computed in double.
// VARIANT: -DT=f32 -DS=f32 -DSTARTED=1 -DDECAYS=1 -DCORRECTS=1 -DIDX=int
// VARIANT: -DT=f16 -DS=f32 -DSTARTED=0 -DDECAYS=0 -DCORRECTS=1 -DIDX=long
// VARIANT: -DT=f64 -DS=f64 -DWIDE=1 -DSTARTED=1 -DDECAYS=1 -DCORRECTS=0 -DIDX=int
#include "common/dtype.clh"

#ifdef WIDE
#define ACC double
#else
#define ACC float
#endif

__kernel void linear_attention(__global const MEM(T)* restrict query,
                               __global const MEM(T)* restrict key,
                               __global const MEM(T)* restrict value,
                               __global const MEM(S)* restrict start,
                               __global const MEM(T)* restrict decay,
                               __global const MEM(T)* restrict beta, __global MEM(T)* restrict y,
                               __global MEM(S)* restrict end, __global ACC* restrict kept,
                               const IDX columns, const IDX steps, const int heads,
                               const int readers, const int size, const int depth,
                               const int decay_width, const int beta_width, const float scale) {
  const IDX at = get_global_id(0);
  if (at >= columns) return;
  const int j = at % depth, head = at / depth % heads;
  const IDX sample = at / depth / heads;
  const ACC factor_of_y = scale == 0 ? 1 / sqrt((ACC)size) : (ACC)scale;
  const IDX base = (sample * heads + head) * size * depth + j;
  for (int i = 0; i < size; ++i) {
#if STARTED
    kept[base + i * depth] = LOAD(S, start, base + i * depth);
#else
    kept[base + i * depth] = 0;
#endif
  }
  for (IDX t = 0; t < steps; ++t) {
    const IDX row = sample * steps + t;
    const IDX k = (row * heads + head) * size;
    ACC change = LOAD(T, value, (row * heads + head) * depth + j);
#if DECAYS
    const bool per_key = decay_width != heads;
    const IDX gate = row * decay_width + head * (per_key ? size : 1);
    for (int i = 0; i < size; ++i) {
      const ACC factor = exp((ACC)LOAD(T, decay, gate + (per_key ? i : 0)));
      kept[base + i * depth] *= factor;
    }
#endif
#if CORRECTS
    for (int i = 0; i < size; ++i) {
      change -= (ACC)LOAD(T, key, k + i) * kept[base + i * depth];
    }
    change *= (ACC)LOAD(T, beta, row * beta_width + (beta_width == 1 ? 0 : head));
#endif
    for (int i = 0; i < size; ++i) {
      kept[base + i * depth] += (ACC)LOAD(T, key, k + i) * change;
    }
    for (int r = 0; r < readers; ++r) {
      const IDX reader = (row * heads + head) * readers + r;
      ACC sum = 0;
      for (int i = 0; i < size; ++i) {
        sum += (ACC)LOAD(T, query, reader * size + i) * kept[base + i * depth];
      }
      STORE(T, y, reader * depth + j, sum * factor_of_y);
    }
  }
  for (int i = 0; i < size; ++i) STORE(S, end, base + i * depth, kept[base + i * depth]);
}
