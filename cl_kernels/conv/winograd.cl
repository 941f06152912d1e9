// Winograd's convolution of 3 x 3 windows, stride 1, by tiles of TILE x TILE outputs (2 or 4), with
// N x N inputs each, N = TILE + 2, around N * N products of matrices (S. Winograd, Arithmetic
// Complexity of Computations, 1980; A. Lavin and S. Gray, arXiv 1509.09308). The points are those of
// backends/cpu/conv/winograd.h: 0, 1, -1, infinity, and 0, +-11/16, +-3/2, infinity.
//
//   input   x[sample][in1][in2][channels] -> v[plane][tile][channels] = B^T d B
//   (product: m[plane][part of the channels][tile][columns] = v[plane] u[plane], u = G g G^T)
//   output  y[sample][out1][out2][columns] = activation(A^T m A + bias + residual)
//
// Tiles are counted over samples, rows, columns, and a launch takes those from `first` on; planes by
// rows of a transformed tile. Rows of v and m
// are v_row and m_row apart, planes of v v_plane, parts of m m_part. What is not finite spreads over its
// tile, and sums may overflow on the way: a vector of outputs with such a value is computed anew from x
// and the filter, [tap][channels][columns] (PANEL 0) or in panels of PANEL columns (matmul/panels.cl),
// in the order of conv/tiled.cl, so that infinities and NaN stand where a direct convolution has them.
// Padding is not multiplied then. Where weights were not transformed, v u is NaN throughout.
//
// Work-item (tile, vector of VEC channels), neighbours with neighbouring channels, `items` in all; or,
// WHOLE, a tile with all its channels.
// VARIANT: -DTILE=2 -DVEC=1 -DWHOLE=0 -DPANEL=0 -DGROUP=128 -DIDX=int -DACTIVATION=ACT_relu -DBIAS -DRESIDUAL
// VARIANT: -DTILE=4 -DVEC=1 -DWHOLE=0 -DPANEL=0 -DGROUP=128 -DIDX=int -DACTIVATION=ACT_relu -DBIAS -DRESIDUAL
// VARIANT: -DTILE=4 -DVEC=1 -DWHOLE=0 -DPANEL=0 -DGROUP=128 -DIDX=long -DACTIVATION=ACT_silu -DBIAS
// VARIANT: -DTILE=2 -DVEC=16 -DWHOLE=1 -DPANEL=32 -DGROUP=1 -DIDX=int -DACTIVATION=ACT_gelu -DBIAS
// VARIANT: -DTILE=4 -DVEC=16 -DWHOLE=1 -DPANEL=32 -DGROUP=1 -DIDX=int -DACTIVATION=ACT_relu -DBIAS
// VARIANT: -DTILE=4 -DVEC=8 -DWHOLE=1 -DPANEL=16 -DGROUP=1 -DIDX=int -DACTIVATION=ACT_none
// VARIANT: -DTILE=4 -DVEC=4 -DWHOLE=1 -DPANEL=8 -DGROUP=1 -DIDX=int -DACTIVATION=ACT_none
#include "common/gelu.clh"
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define N (TILE + 2)
#if TILE == 2
#define TRANSFORM_IN(a, b)   \
  {                          \
    (b)[0] = (a)[0] - (a)[2]; \
    (b)[1] = (a)[1] + (a)[2]; \
    (b)[2] = (a)[2] - (a)[1]; \
    (b)[3] = (a)[1] - (a)[3]; \
  }
#define TRANSFORM_OUT(a, b)              \
  {                                      \
    (b)[0] = (a)[0] + ((a)[1] + (a)[2]); \
    (b)[1] = (a)[1] - (a)[2] - (a)[3];   \
  }
#else
#define P1 0.6875f
#define P2 1.5f
#define TIMES(x, y, z) fma((VF)(x), y, z)
#define TRANSFORM_IN(a, b)                                                                  \
  {                                                                                         \
    const VF even1 = TIMES(-P2 * P2, (a)[2], (a)[4]), odd1 = TIMES(-P2 * P2, (a)[1], (a)[3]); \
    const VF even2 = TIMES(-P1 * P1, (a)[2], (a)[4]), odd2 = TIMES(-P1 * P1, (a)[1], (a)[3]); \
    const VF last = TIMES(-(P1 * P1 + P2 * P2), (a)[3], (a)[5]);                             \
    (b)[0] = TIMES(P1 * P1 * P2 * P2, (a)[0], TIMES(-(P1 * P1 + P2 * P2), (a)[2], (a)[4]));  \
    (b)[1] = TIMES(P1, odd1, even1);                                                         \
    (b)[2] = TIMES(-P1, odd1, even1);                                                        \
    (b)[3] = TIMES(P2, odd2, even2);                                                         \
    (b)[4] = TIMES(-P2, odd2, even2);                                                        \
    (b)[5] = TIMES(P1 * P1 * P2 * P2, (a)[1], last);                                         \
  }
#define TRANSFORM_OUT(a, b)                                                                 \
  {                                                                                         \
    const VF even1 = (a)[1] + (a)[2], odd1 = (a)[1] - (a)[2];                                \
    const VF even2 = (a)[3] + (a)[4], odd2 = (a)[3] - (a)[4];                                \
    (b)[0] = (a)[0] + (even1 + even2);                                                       \
    (b)[1] = TIMES(P1, odd1, P2 * odd2);                                                     \
    (b)[2] = TIMES(P1 * P1, even1, (P2 * P2) * even2);                                       \
    (b)[3] = TIMES(P1 * P1 * P1, odd1, TIMES(P2 * P2 * P2, odd2, (a)[5]));                    \
  }
#endif
#if VEC == 1
#define STRANGE(v) isnan(v)
#else
#define STRANGE(v) any(isnan(v))
#endif
// The tile and first channel of this work-item; its place in the sample.
#define TILE_PLACE                                                              \
  const IDX line = tile / tiles2, sample = line / tiles1;                        \
  const int top = (int)(line - sample * tiles1) * TILE, left = (int)(tile - line * tiles2) * TILE;
#if WHOLE
#define FOR_VECTORS(count)                                     \
  const IDX slot = get_global_id(0), tile = first + slot;      \
  if (slot >= items) return;                                   \
  TILE_PLACE                                                   \
  for (int c = 0; c < (count); c += VEC)
#else
#define FOR_VECTORS(count)                                         \
  const IDX item = get_global_id(0), slot = item / ((count) / VEC); \
  if (item >= items) return;                                       \
  const IDX tile = first + slot;                                   \
  const int c = (int)(item - slot * ((count) / VEC)) * VEC;        \
  TILE_PLACE
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void input(
    __global const float* restrict x, __global float* restrict v, const IDX items,
    const IDX first, const int channels, const int in1, const int in2, const int pad1, const int pad2,
    const int tiles1, const int tiles2, const IDX v_row, const IDX v_plane) {
  FOR_VECTORS(channels) {
    const int row0 = top - pad1, column0 = left - pad2;
    __global const float* from = x + (((IDX)sample * in1 + row0) * in2 + column0) * channels + c;
    __global float* to = v + slot * v_row + c;
    VF half_[N][N];
// Columns, then rows; INSIDE: nothing of the tile lies in the padding.
#define TAKE_COLUMNS(INSIDE)                                                                      \
  UNROLL for (int j = 0; j < N; ++j) {                                                            \
    VF a[N], b[N];                                                                                \
    const int there = (uint)(column0 + j) < (uint)in2;                                            \
    UNROLL for (int i = 0; i < N; ++i) {                                                          \
      a[i] = 0;                                                                                   \
      if (INSIDE || (there && (uint)(row0 + i) < (uint)in1))                                      \
        a[i] = VLOAD(from + ((IDX)i * in2 + j) * channels);                                       \
    }                                                                                             \
    TRANSFORM_IN(a, b)                                                                            \
    UNROLL for (int i = 0; i < N; ++i) half_[i][j] = b[i];                                        \
  }
#if WHOLE
    if (row0 >= 0 && column0 >= 0 && row0 + N <= in1 && column0 + N <= in2) {
      TAKE_COLUMNS(1)
    } else
#endif
    {
      TAKE_COLUMNS(0)
    }
    UNROLL for (int i = 0; i < N; ++i) {
      VF b[N];
      TRANSFORM_IN(half_[i], b)
      UNROLL for (int j = 0; j < N; ++j) VSTORE(b[j], to + (i * N + j) * v_plane);
    }
  }
}

#ifdef BIAS
#define BIAS_OF VLOAD(bias + c)
#else
#define BIAS_OF 0
#endif
#ifdef RESIDUAL
#define RESIDUAL_OF(at) VLOAD(residual + (at))
#else
#define RESIDUAL_OF(at) 0
#endif
// The sum v becomes output (row, column), which may lie beyond the edge.
#define FINISH(v, row, column)                                                        \
  if ((row) < out1 && (column) < out2) {                                              \
    const IDX at = (((IDX)sample * out1 + (row)) * out2 + (column)) * columns + c;    \
    const VF v_ = (v) + start + RESIDUAL_OF(at);                                      \
    VSTORE(ACTIVATE_LANES(ACTIVATION, v_), y + at);                                   \
  }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void output(
    __global const float* restrict m, __global const float* restrict x,
    __global const float* restrict filter,
#ifdef BIAS
    __global const float* restrict bias,
#endif
#ifdef RESIDUAL
    __global const float* restrict residual,
#endif
    __global float* restrict y, const IDX items, const IDX first, const int channels,
    const int columns,
    const int in1, const int in2, const int out1, const int out2, const int pad1, const int pad2,
    const int tiles1, const int tiles2, const int part_count, const IDX m_row, const IDX m_part) {
  FOR_VECTORS(columns) {
    VF sum[TILE][TILE];
    UNROLL for (int i = 0; i < TILE; ++i) UNROLL for (int j = 0; j < TILE; ++j) sum[i][j] = 0;
    __global const float* from = m + slot * m_row + c;
    for (int part = 0; part < part_count; ++part, from += m_part) {
      VF half_[TILE][N];
      UNROLL for (int j = 0; j < N; ++j) {
        VF a[N], b[TILE];
        UNROLL for (int i = 0; i < N; ++i) a[i] = VLOAD(from + (IDX)(i * N + j) * part_count * m_part);
        TRANSFORM_OUT(a, b)
        UNROLL for (int i = 0; i < TILE; ++i) half_[i][j] = b[i];
      }
      UNROLL for (int i = 0; i < TILE; ++i) {
        VF b[TILE];
        TRANSFORM_OUT(half_[i], b)
        UNROLL for (int j = 0; j < TILE; ++j) sum[i][j] += b[j];
      }
    }
    VF strange = 0;  // NaN where a sum is not finite
    UNROLL for (int i = 0; i < TILE; ++i) UNROLL for (int j = 0; j < TILE; ++j)
        strange = fma(sum[i][j], (VF)(0), strange);
    const VF start = BIAS_OF;
#if CAT(CURVED_, ACTIVATION)
    // The activation comes once in the code: the sums move up, row by row.
    ROLLED for (int k = 0; k < TILE * TILE; ++k) {
      FINISH(sum[0][0], top + k / TILE, left + k % TILE)
      UNROLL for (int i = 0; i < TILE; ++i) UNROLL for (int j = 0; j < TILE; ++j)
          sum[i][j] = j + 1 < TILE ? sum[i][j + 1 < TILE ? j + 1 : 0] : sum[i + 1 < TILE ? i + 1 : 0][0];
    }
#else
    UNROLL for (int i = 0; i < TILE; ++i) UNROLL for (int j = 0; j < TILE; ++j)
        FINISH(sum[i][j], top + i, left + j)
#endif
    if (STRANGE(strange)) {
      ROLLED for (int k = 0; k < TILE * TILE; ++k) {
        const int row0 = top + k / TILE - pad1, column0 = left + k % TILE - pad2;
        VF direct = 0;
        ROLLED for (int tap = 0; tap < 9; ++tap) {
          const int row = row0 + tap / 3, column = column0 + tap % 3;
          if ((uint)row >= (uint)in1 || (uint)column >= (uint)in2) continue;
          __global const float* p = x + (((IDX)sample * in1 + row) * in2 + column) * channels;
#if PANEL
          __global const float* w =
              filter + (((IDX)(c / PANEL) * 9 + tap) * channels) * PANEL + c % PANEL;
#define NEXT_CHANNEL PANEL
#else
          __global const float* w = filter + (IDX)tap * channels * columns + c;
#define NEXT_CHANNEL columns
#endif
          ROLLED for (int l = 0; l < channels; ++l, w += NEXT_CHANNEL)
              direct = fma((VF)(p[l]), VLOAD(w), direct);
        }
        FINISH(direct, row0 + pad1, column0 + pad2)
      }
    }
  }
}
