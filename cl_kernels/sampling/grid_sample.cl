// grid_sample: y[n][places][channels] reads x[n][size0][size1][size2][channels] between its pixels
// where grid[n][places][axes] says; formulas and roundings are those of
// backends/cpu/kernels_sampling.cc. One work-item per element of y, channels fastest. An image of two
// axes has size0 1. Places may be anything: what lies outside is replaced before it is read.
// TAPS: 1 nearest, 2 linear, 4 cubic (two axes). PADDING: 0 zeros, 1 border, 2 reflection.
// T, G: dtypes of x and the grid.
// VARIANT: -DT=f32 -DG=f32 -DIDX=int -DTAPS=1 -DPADDING=0 -DALIGN=0 -DAXES=2
// VARIANT: -DT=f16 -DG=f32 -DIDX=long -DTAPS=2 -DPADDING=2 -DALIGN=1 -DAXES=3
// VARIANT: -DT=bf16 -DG=bf16 -DIDX=int -DTAPS=4 -DPADDING=1 -DALIGN=0 -DAXES=2
#include "common/dtype.clh"
#include "common/group.clh"
#pragma OPENCL FP_CONTRACT OFF

#define ACC CARRY(T)

float reflected(const float x, const float low, const float high) {
  const float range = high - low;
  if (!(range > 0)) return low;
  if (x >= low && x <= high) return x;
  const float beyond = x < low ? low - x : x - high;
  const float times = floor(beyond / range), rest = beyond - times * range;
  const bool even = fmod(times, 2.0f) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

#if ALIGN
#define LOW 0.0f
#define HIGH(size) ((float)(size)-1.0f)
#else
#define LOW -0.5f
#define HIGH(size) ((float)(size)-0.5f)
#endif

float place_of(float g, const int size) {
  if (g != g) g = -3;
  g = clamp(g, -1e6f, 1e6f);
  const float n = size;
#if ALIGN
  float x = (g + 1) / 2 * (n - 1);
#else
  float x = ((g + 1) * n - 1) / 2;
#endif
#if PADDING == 1
  if (x < LOW || x > HIGH(size)) x = clamp(x, 0.0f, n - 1);
#elif PADDING == 2
  x = reflected(x, LOW, HIGH(size));
#endif
  return x;
}

int pixel_of(float x, const int size) {
  const float last = size - 1;
  if (x >= 0 && x <= last) return (int)x;
#if PADDING == 0
  return -1;
#elif PADDING == 2
  x = reflected(x, LOW, HIGH(size));
#endif
  return (int)clamp(x, 0.0f, last);
}

ACC cubic(ACC x) {
  const ACC a = -0.75f;
  x = fabs(x);
  return x <= 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
         : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                 : (ACC)0;
}

void taps_of(const float x, const int size, int* pixel, ACC* weight) {
#if TAPS == 1
  pixel[0] = pixel_of(rint(x), size);
  weight[0] = 1;
#else
  const float base = floor(x);
  const ACC t = x - base;
#if TAPS == 2
  pixel[0] = pixel_of(base, size);
  pixel[1] = pixel_of(base + 1, size);
  weight[0] = 1 - t;
  weight[1] = t;
#else
  for (int k = 0; k < 4; ++k) {
    pixel[k] = pixel_of(base + (float)(k - 1), size);
    weight[k] = cubic(t - (k - 1));
  }
#endif
#endif
}

__kernel void grid_sample(__global const MEM(T)* restrict x, __global const MEM(G)* restrict grid,
                          __global MEM(T)* restrict y, const IDX total, const IDX places,
                          const int channels, const int size0, const int size1, const int size2) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % channels;
  const IDX place = at / channels, sample = place / places;
  int p1[TAPS], p2[TAPS];
  ACC w1[TAPS], w2[TAPS];
  taps_of(place_of(LOAD(G, grid, place * AXES), size2), size2, p2, w2);
  taps_of(place_of(LOAD(G, grid, place * AXES + 1), size1), size1, p1, w1);
#if AXES == 3
  int p0[TAPS];
  ACC w0[TAPS];
  taps_of(place_of(LOAD(G, grid, place * AXES + 2), size0), size0, p0, w0);
#define OUTER TAPS
#else
  const int p0[1] = {0};
  const ACC w0[1] = {1};
#define OUTER 1
#endif
  ACC sum = 0;
  for (int a = 0; a < OUTER; ++a) {
    for (int b = 0; b < TAPS; ++b) {
      for (int d = 0; d < TAPS; ++d) {
        if (p0[a] < 0 || p1[b] < 0 || p2[d] < 0) continue;
        const IDX from = ((sample * size0 + p0[a]) * size1 + p1[b]) * size2 + p2[d];
        sum += w0[a] * w1[b] * w2[d] * (ACC)LOAD(T, x, from * channels + c);
      }
    }
  }
  STORE(T, y, at, sum);
}
