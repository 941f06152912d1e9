// Pools over channels-last x of f32, f16, bf16 or, for maxima, bytes (T) without indices: a work-item
// takes VEC channels, of which there are a multiple, of `stretch` neighbouring pixels of a row of y.
// Vectors of channels count fastest, then stretches, then rows. Sums are of float.
//
// max_pool_vectors: a NaN wins; a window that sees nothing gives -infinity, or the least byte.
// average_pool_vectors: with COUNT_PADS the divisor counts padding, up to its end end0...
// ROWS, COLUMNS: the kernel's sizes along the last two axes, where it is small.
// VARIANT: -DT=f32 -DVEC=16 -DIDX=int
// VARIANT: -DT=f32 -DVEC=16 -DIDX=int -DROWS=3 -DCOLUMNS=3
// VARIANT: -DT=f32 -DVEC=4 -DIDX=int -DROWS=3 -DCOLUMNS=3
// VARIANT: -DT=f32 -DVEC=4 -DIDX=int -DROWS=2 -DCOLUMNS=2
// VARIANT: -DT=f16 -DVEC=4 -DIDX=int -DROWS=3 -DCOLUMNS=3 -DCOUNT_PADS
// VARIANT: -DT=f32 -DVEC=4 -DIDX=int
// VARIANT: -DT=f16 -DVEC=4 -DIDX=int -DCOUNT_PADS
// VARIANT: -DT=bf16 -DVEC=8 -DIDX=long -DCOUNT_PADS
// VARIANT: -DT=f32 -DVEC=2 -DIDX=int
// VARIANT: -DT=f16 -DVEC=1 -DIDX=int
// VARIANT: -DT=u8 -DVEC=4 -DIDX=int -DROWS=3 -DCOLUMNS=3
// VARIANT: -DT=i8 -DVEC=16 -DIDX=int -DROWS=2 -DCOLUMNS=2
// VARIANT: -DT=u8 -DVEC=1 -DIDX=int
#include "common/vector.clh"
#include "common/quad.clh"
#include "common/window.clh"
#if VEC == 4
#define READ(p) LOAD4(p)
#define WRITE(v, p) STORE4(v, p)
#else
#define READ(p) VLOAD(p)
#define WRITE(v, p) VSTORE(v, p)
#endif

// The pixel of x under taps (k0, k1, k2).
#define PIXEL(k0, k1, k2)                                                                        \
  READ(x + (((sample * in0 + s0 + (k0) * dilation0) * in1 + s1 + (k1) * dilation1) * in2 + s2 +  \
            (k2) * dilation2) * channels + c)
// Runs `body` with `v` for each pixel that the window sees, and perhaps for taps outside, for which
// `there` is 0 and v some pixel of the window: so all of a small window is read at once.
#ifdef ROWS
#define FOR_SEEN(body)                                                                            \
  if (f1 < l1 && f2 < l2) {                                                                       \
    for (int k0 = f0; k0 < l0; ++k0) {                                                            \
      VF seen_[ROWS * COLUMNS];                                                                   \
      UNROLL for (int t = 0; t < ROWS * COLUMNS; ++t) {                                           \
        seen_[t] = PIXEL(k0, clamp(t / COLUMNS, f1, l1 - 1), clamp(t % COLUMNS, f2, l2 - 1));     \
      }                                                                                           \
      UNROLL for (int t = 0; t < ROWS * COLUMNS; ++t) {                                           \
        const VF v = seen_[t];                                                                    \
        const int there = (t / COLUMNS >= f1) & (t / COLUMNS < l1) & (t % COLUMNS >= f2) &        \
                          (t % COLUMNS < l2);                                                     \
        (void)there;                                                                              \
        body                                                                                      \
      }                                                                                           \
    }                                                                                             \
  }
#else
#define FOR_SEEN(body)                                                                            \
  for (int k0 = f0; k0 < l0; ++k0) {                                                              \
    for (int k1 = f1; k1 < l1; ++k1) {                                                            \
      for (int k2 = f2; k2 < l2; ++k2) {                                                          \
        const VF v = PIXEL(k0, k1, k2);                                                           \
        const int there = 1;                                                                      \
        (void)there;                                                                              \
        body                                                                                      \
      }                                                                                           \
    }                                                                                             \
  }
#endif

// Runs `before`, FOR_SEEN(body), then `after` with `at`, the place in y, for every pixel of the stretch.
#define FOR_PIXELS(before, body, after)                                                           \
  const IDX item = get_global_id(0);                                                              \
  if (item >= items) return;                                                                      \
  const int c = item % vectors * VEC, begin = item / vectors % stretches * stretch;               \
  const IDX row = item / vectors / stretches, sample = row / out1 / out0;                         \
  const int o1 = row % out1, o0 = row / out1 % out0, end = min(out2, begin + stretch);            \
  const int s0 = o0 * stride0 - pad0, s1 = o1 * stride1 - pad1;                                   \
  const int f0 = first_tap(s0, dilation0), f1 = first_tap(s1, dilation1);                         \
  const int l0 = last_tap(s0, dilation0, kernel0, in0), l1 = last_tap(s1, dilation1, kernel1, in1); \
  for (int o2 = begin; o2 < end; ++o2) {                                                          \
    const int s2 = o2 * stride2 - pad2, f2 = first_tap(s2, dilation2);                            \
    const int l2 = last_tap(s2, dilation2, kernel2, in2);                                         \
    before                                                                                        \
    FOR_SEEN(body)                                                                                \
    const IDX at = (row * out2 + o2) * channels + c;                                              \
    after                                                                                         \
  }

__kernel void max_pool_vectors(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                               const IDX items, const int vectors, const int stretches,
                               const int stretch, const int channels, WINDOW_PARAMS) {
  FOR_PIXELS(VF best = -INFINITY;, best = ((v > best) | (v != v)) ? v : best;, WRITE(best, y + at);)
}

// Taps of a window up to the end of the padding.
int padded_taps(const int start, const int dilation, const int kernel_size, const int end) {
  return min(kernel_size, (end - start + dilation - 1) / dilation);
}

__kernel void average_pool_vectors(__global const MEM(T)* restrict x, __global MEM(T)* restrict y,
                                   const IDX items, const int vectors, const int stretches,
                                   const int stretch, const int channels, WINDOW_PARAMS,
                                   const int end0, const int end1, const int end2) {
#ifdef COUNT_PADS
#define SEEN                                                \
  (float)padded_taps(s0, dilation0, kernel0, end0) *        \
      (float)padded_taps(s1, dilation1, kernel1, end1) *    \
      (float)padded_taps(s2, dilation2, kernel2, end2)
#else
#define SEEN (float)max(0, l0 - f0) * (float)max(0, l1 - f1) * (float)max(0, l2 - f2)
#endif
  FOR_PIXELS(VF sum = 0;, sum += there ? v : (VF)0;, const float seen = SEEN; const VF none = 0;
             WRITE(seen == 0 ? none : sum / seen, y + at);)
}
