// Normalisation of rows of n elements with one work-item per row and vectors of V lanes, for devices
// that want that. T: f32, f16 or bf16 in memory; computed in float. Sums are made lane by lane, 256
// vectors at a time, so that a float keeps its digits.
//
// softmax_lines: y = exp(x - max) / sum (or its logarithm: LOG 1).
// layer_norm_lines: as layer_norm of norm/layer_norm.cl; HAS_SCALE, HAS_OFFSET: 0 none, 1 one for
// each of the n.
// VARIANT: -DT=f32 -DV=16 -DIDX=int -DLOG=0
// VARIANT: -DT=bf16 -DV=4 -DIDX=long -DLOG=1
// VARIANT: -DT=f32 -DV=16 -DIDX=int -DCENTERED=1 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=1 -DOFFSET=f32
// VARIANT: -DT=f16 -DV=8 -DIDX=int -DCENTERED=0 -DHAS_SCALE=1 -DSCALE=f32 -DHAS_OFFSET=0 -DOFFSET=f16
#include "common/vector.clh"
#define BLOCK (256 * V)
#define PLUS(a, b) ((a) + (b))
// NaN wins.
#define LARGER(a, b) ((((a) != (a)) | ((a) > (b))) ? (a) : (b))
#define DEFINE_LANES_JOIN(name, JOIN)                    \
  float name(const VF v) {                               \
    float lanes[V];                                      \
    ACT_CAT(vstore, V)(v, 0, lanes);                     \
    for (int half_ = V / 2; half_ > 0; half_ /= 2) {     \
      for (int i = 0; i < half_; ++i) lanes[i] = JOIN(lanes[i], lanes[i + half_]); \
    }                                                    \
    return lanes[0];                                     \
  }
DEFINE_LANES_JOIN(sum_of_lanes, PLUS)

// The sum of TERM(v) over the row `x`, v a vector of elements or, at the end, one element.
#define SUM_ROW(sum, TERM)                                                    \
  float sum = 0;                                                              \
  for (IDX first = 0; first < whole; first += BLOCK) {                        \
    const IDX stop = min(first + BLOCK, whole);                               \
    VF part = 0;                                                              \
    for (IDX k = first; k < stop; k += V) {                                   \
      const VF v = VLOAD(x + k);                                              \
      part += TERM(v);                                                        \
    }                                                                         \
    sum += sum_of_lanes(part);                                                \
  }                                                                           \
  for (IDX k = whole; k < n; ++k) {                                           \
    const float v = LOAD(T, x, k);                                            \
    sum += TERM(v);                                                           \
  }

#ifdef LOG
DEFINE_LANES_JOIN(most_of_lanes, LARGER)
#if LOG
#define RESULT(v) ((v) - largest - last)
#define LAST(sum) log(sum)
#else
#define RESULT(v) (exp((v) - largest) / last)
#define LAST(sum) (sum)
#endif
#define EXPONENTIAL(v) exp((v) - largest)

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void softmax_lines(__global const MEM(T)* restrict x, __global MEM(T)* restrict y, const IDX n) {
  x += (IDX)get_global_id(0) * n;
  y += (IDX)get_global_id(0) * n;
  const IDX whole = n - n % V;
  VF most = -INFINITY;
  for (IDX k = 0; k < whole; k += V) {
    const VF v = VLOAD(x + k);
    most = LARGER(v, most);
  }
  float largest = most_of_lanes(most);
  for (IDX k = whole; k < n; ++k) {
    const float v = LOAD(T, x, k);
    largest = LARGER(v, largest);
  }
  SUM_ROW(sum, EXPONENTIAL)
  const float last = LAST(sum);
  for (IDX k = 0; k < whole; k += V) {
    const VF v = VLOAD(x + k);
    VSTORE(RESULT(v), y + k);
  }
  for (IDX k = whole; k < n; ++k) {
    const float v = LOAD(T, x, k);
    STORE(T, y, k, RESULT(v));
  }
}
#else
#define ITSELF(v) (v)
#define SQUARE(v) (((v) - mean) * ((v) - mean))

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void layer_norm_lines(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
#if HAS_SCALE
                      __global const MEM(SCALE)* restrict scale,
#endif
#if HAS_OFFSET
                      __global const MEM(OFFSET)* restrict offset,
#endif
                      const IDX n, const float epsilon) {
  x += (IDX)get_global_id(0) * n;
  y += (IDX)get_global_id(0) * n;
  const IDX whole = n - n % V;
#if CENTERED
  SUM_ROW(sum, ITSELF)
  const float mean = sum / n;
#else
  const float mean = 0;
#endif
  SUM_ROW(square, SQUARE)
  const float factor = 1 / sqrt(square / n + epsilon);
  for (IDX k = 0; k < whole; k += V) {
    VF v = (VLOAD(x + k) - mean) * factor;
#if HAS_SCALE
    v *= CAT(VLOAD_, SCALE)(scale + k);
#endif
#if HAS_OFFSET
    v += CAT(VLOAD_, OFFSET)(offset + k);
#endif
    VSTORE(v, y + k);
  }
  for (IDX k = whole; k < n; ++k) {
    float v = (LOAD(T, x, k) - mean) * factor;
#if HAS_SCALE
    v *= LOAD(SCALE, scale, k);
#endif
#if HAS_OFFSET
    v += LOAD(OFFSET, offset, k);
#endif
    STORE(T, y, k, v);
  }
}
#endif
