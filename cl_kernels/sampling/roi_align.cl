// roi_align: y[region][bins_y][bins_x][channels] from x[batch][rows][columns][channels]; the formulas
// are those of backends/cpu/kernels_sampling.cc. One work-item per element of y. A region with a bad
// number of its image, or of more than MOST samples for a bin, is reported and left out.
// T, R, INDEX: dtypes of x, rois and batch. SAMPLES: each way, 0 for as many as pixels.
// VARIANT: -DT=f32 -DR=f32 -DINDEX=i64 -DIDX=int -DMAX=0 -DSAMPLES=0 -DHALF_PIXEL=1 -DMOST=1024
// VARIANT: -DT=f16 -DR=f32 -DINDEX=i32 -DIDX=long -DMAX=1 -DSAMPLES=2 -DHALF_PIXEL=0 -DMOST=1024
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/group.clh"
#include "common/index.clh"
#pragma OPENCL FP_CONTRACT OFF

#define ACC CARRY(T)

// Begin of the region, length of a bin; returns how many samples it has, or -1.
int way(const float from, const float to, const float scale, const int bins, float* begin,
        float* bin) {
#if HALF_PIXEL
  *begin = from * scale - 0.5f;
  const float end = to * scale - 0.5f, size = end - *begin;
#else
  *begin = from * scale;
  const float end = to * scale, size = fmax(end - *begin, 1.0f);
#endif
  *bin = size / (float)bins;
#if SAMPLES
  return SAMPLES;
#else
  const float wanted = ceil(*bin);
  return wanted <= MOST ? max((int)wanted, 0) : -1;
#endif
}

// False when the place lies more than a pixel outside.
bool neighbours(float x, const int size, int* low, int* high, ACC* weight) {
  if (!(x >= -1 && x <= (float)size)) return false;
  x = fmax(x, 0.0f);
  *low = (int)x;
  *high = *low + 1;
  if (*low >= size - 1) {
    *low = *high = size - 1;
    x = *low;
  }
  *weight = x - (float)*low;
  return true;
}

__kernel void roi_align(__global const MEM(T)* restrict x, __global const MEM(R)* restrict rois,
                        __global const MEM(INDEX)* restrict batch, __global MEM(T)* restrict y,
                        const IDX total, const int images, const int rows, const int columns,
                        const int channels, const int bins_y, const int bins_x, const float scale,
                        ERROR_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % channels;
  const IDX bin = at / channels;
  const int bin_x = bin % bins_x, bin_y = bin / bins_x % bins_y;
  const IDX region = bin / bins_x / bins_y;
  const long image = READ_INDEX(INDEX, batch, region);
  float begin_x, begin_y, size_x, size_y;
  const int across = way(LOAD(R, rois, region * 4), LOAD(R, rois, region * 4 + 2), scale, bins_x,
                         &begin_x, &size_x);
  const int down = way(LOAD(R, rois, region * 4 + 1), LOAD(R, rois, region * 4 + 3), scale, bins_y,
                       &begin_y, &size_y);
  if (image < 0 || image >= images || across < 0 || down < 0) {
    REPORT(ERROR_INDEX);
    return;
  }
  ACC sum = 0;
  bool first = true;
#if MAX
#define TAKE(v) sum = first ? (v) : fmax(sum, v), first = false
#else
#define TAKE(v) sum += (v)
#endif
  for (int i = 0; i < down; ++i) {
    int top, bottom, left, right;
    ACC lower = 0, inner = 0;
    const float py = begin_y + (float)bin_y * size_y + ((float)i + 0.5f) * size_y / (float)down;
    const bool in_rows = neighbours(py, rows, &top, &bottom, &lower);
    for (int j = 0; j < across; ++j) {
      const float px =
          begin_x + (float)bin_x * size_x + ((float)j + 0.5f) * size_x / (float)across;
      if (!neighbours(px, columns, &left, &right, &inner) || !in_rows) {
        TAKE((ACC)0);
        continue;
      }
#define PIXEL(r, q) LOAD(T, x, (((IDX)image * rows + (r)) * columns + (q)) * channels + c)
      TAKE((1 - lower) * (1 - inner) * PIXEL(top, left));
      TAKE((1 - lower) * inner * PIXEL(top, right));
      TAKE(lower * (1 - inner) * PIXEL(bottom, left));
      TAKE(lower * inner * PIXEL(bottom, right));
    }
  }
#if !MAX
  sum /= max(down * across, 1);
#endif
  STORE(T, y, at, sum);
}
