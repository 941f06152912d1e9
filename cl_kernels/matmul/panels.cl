// Products for devices that want one work-item per group and wide private vectors. T: f32 (where it
// is not given), f16 or bf16, in memory; sums are of float.
//
// pack: b[matrix][l][j] (any steps) -> panels of PANEL = 2 V columns: packed[matrix][panel][l][PANEL],
// the last panel filled with zeros. One work-item per row of a panel.
//
// panels: the product of engine/ops/conv_product.h. Rows of a come in lines of `line_rows`, counted
// over three axes; a row is tap_count runs of `run` floats; a line is cut into tiles of at most ROWS
// rows, as even as can be. Work-item (x, panel, z) does tiles [x, x + 1) * tiles_per_item. Rows that a
// tile lacks repeat its last one and are not stored. y, bias and residual of z lie y_step, bias_step
// and y_step apart; rows of y row_y apart. PARTIAL: each run is added up by itself, which makes
// the sums' errors smaller.
// VARIANT: -DV=16 -DROWS=8 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none
// VARIANT: -DV=16 -DROWS=6 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu -DBIAS
// VARIANT: -DV=16 -DROWS=4 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DRESIDUAL
// VARIANT: -DV=16 -DROWS=1 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none -DBIAS
// VARIANT: -DV=8 -DROWS=1 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none
// VARIANT: -DV=4 -DROWS=4 -DIDX=int -DAXES=0 -DACTIVATION=ACT_none
// VARIANT: -DT=f16 -DV=16 -DROWS=8 -DIDX=int -DAXES=0 -DACTIVATION=ACT_relu6 -DBIAS -DRESIDUAL
// VARIANT: -DT=bf16 -DV=8 -DROWS=4 -DIDX=long -DAXES=1 -DACTIVATION=ACT_silu -DBIAS
// VARIANT: -DV=8 -DROWS=6 -DIDX=int -DAXES=1 -DACTIVATION=ACT_gelu -DBIAS -DRESIDUAL
// VARIANT: -DV=4 -DROWS=1 -DIDX=long -DAXES=2 -DACTIVATION=ACT_relu -DBIAS
// VARIANT: -DV=16 -DROWS=8 -DIDX=int -DAXES=1 -DACTIVATION=ACT_none -DPARTIAL
#include "common/batch.clh"
#include "common/vector.clh"
#include "common/gelu.clh"
#define PANEL (2 * V)
#define IS_NARROW_f32 0
#define IS_NARROW_f16 1
#define IS_NARROW_bf16 1
#if CAT(IS_NARROW_, T)
#define BLOCKED
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pack(
    __global const RAW(T)* restrict b, __global RAW(T)* restrict packed, const IDX n, const IDX k,
    const IDX b_row, const IDX b_col, const IDX b_matrix) {
  const IDX l = get_global_id(0), panel = get_global_id(1), matrix = get_global_id(2);
  __global const RAW(T)* from = b + matrix * b_matrix + l * b_row + panel * PANEL * b_col;
  __global RAW(T)* to = packed + ((matrix * get_global_size(1) + panel) * k + l) * PANEL;
  const IDX columns = n - panel * PANEL;
  for (IDX j = 0; j < PANEL; ++j) to[j] = j < columns ? from[j * b_col] : 0;
}

#if ROWS == 8
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#elif ROWS == 6
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5)
#elif ROWS == 4
#define EACH(f) f(0) f(1) f(2) f(3)
#else
#define EACH(f) f(0)
#endif

// The first `count` floats of a vector, and reading as many.
VF load_some(__global const MEM(T)* p, const IDX count) {
  if (count >= V) return VLOAD(p);
  float some[V];
  for (int i = 0; i < V; ++i) some[i] = i < count ? LOAD(T, p, i) : 0.0f;
  return ACT_CAT(vload, V)(0, some);
}
void store_some(const VF v, __global MEM(T)* p, const IDX count) {
  if (count >= V) {
    VSTORE(v, p);
  } else {
    float some[V];
    ACT_CAT(vstore, V)(v, 0, some);
    for (int i = 0; i < count; ++i) STORE(T, p, i, some[i]);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void panels(
    __global const MEM(T)* restrict a, __global const MEM(T)* restrict b,
#ifdef BIAS
    __global const MEM(T)* restrict bias,
#endif
#ifdef RESIDUAL
    __global const MEM(T)* restrict residual,
#endif
    __global MEM(T)* restrict y, const IDX columns, const IDX row_y, const IDX y_step,
    const IDX bias_step, const IDX tiles, const IDX tiles_per_item, const IDX tiles_per_line,
    const IDX line_rows, const IDX lines1, const IDX lines2, const IDX line_step0,
    const IDX line_step1, const IDX line_step2, const IDX row_step, const IDX run_step,
    const IDX run, const IDX taps0, const IDX taps1, const IDX taps2, const IDX tap_step0,
    const IDX tap_step1, const IDX tap_step2 BATCH_PARAMS) {
  const IDX panel = get_global_id(1), column = panel * PANEL;
  const IDX count0 = columns - column, count1 = count0 - V;  // columns that each vector has
  IDX z = get_global_id(2), a0 = 0, b0 = panel * PANEL * run * taps0 * taps1 * taps2;
  const IDX y0 = z * y_step + column, bias0 = z * bias_step + column;
  BATCH_OFFSETS(z, a0, b0)
  const IDX first = (IDX)get_global_id(0) * tiles_per_item;
  const IDX last = min(tiles, first + tiles_per_item);
  VF start0 = 0, start1 = 0;
#ifdef BIAS
  start0 = load_some(bias + bias0, count0);
  if (count1 > 0) start1 = load_some(bias + bias0 + V, count1);
#endif
  for (IDX tile = first; tile < last; ++tile) {
    const IDX line = tile / tiles_per_line, part = tile % tiles_per_line;
    // The first tiles of a line have a row more; no product here is above the number of rows.
    const IDX even = line_rows / tiles_per_line, more = line_rows % tiles_per_line;
    const IDX row = part * even + min(part, more);
    const IDX rows = even + (part < more ? 1 : 0);
    __global const MEM(T)* base = a + a0 + line % lines2 * line_step2 +
                                 line / lines2 % lines1 * line_step1 +
                                 line / lines2 / lines1 * line_step0 + row * row_step;
    const IDX at = y0 + (line * line_rows + row) * row_y;
#define DECLARE(i)                                   \
  const IDX r##i = min((IDX)i, rows - 1) * row_step; \
  VF s##i = start0, t##i = start1;
    EACH(DECLARE)
#ifdef RESIDUAL
#define ADD(i)                                                                     \
  if (i < rows) {                                                                  \
    s##i += load_some(residual + at + i * row_y, count0);                          \
    if (count1 > 0) t##i += load_some(residual + at + i * row_y + V, count1);      \
  }
    EACH(ADD)
#endif
    __global const MEM(T)* w = b + b0;
    for (IDX d0_ = 0; d0_ < taps0; ++d0_) {
      for (IDX d1_ = 0; d1_ < taps1; ++d1_) {
        for (IDX d2_ = 0; d2_ < taps2; ++d2_) {
          __global const MEM(T)* p = base + d0_ * tap_step0 + d1_ * tap_step1 + d2_ * tap_step2;
#ifdef PARTIAL
#define KEEP(i)                                  \
  const VF kept_s##i = s##i, kept_t##i = t##i;   \
  s##i = 0;                                      \
  t##i = 0;
          EACH(KEEP)
#endif
#ifdef BLOCKED
          // Rows of 16-bit elements are widened V at a time, which is much cheaper than one by one.
          for (IDX l = 0; l < run; l += V) {
            float block[ROWS * V];
            const IDX n = min((IDX)V, run - l);
#define WIDEN(i)                                                                    \
  if (n == V && run_step == 1) {                                                    \
    ACT_CAT(vstore, V)(VLOAD(p + r##i), 0, block + i * V);                          \
  } else {                                                                          \
    for (int j = 0; j < n; ++j) block[i * V + j] = LOAD(T, p, r##i + j * run_step); \
  }
            EACH(WIDEN)
            for (int j = 0; j < n; ++j) {
              const VF w0 = VLOAD(w), w1 = VLOAD(w + V);
#define MULTIPLY(i)                        \
  {                                        \
    const VF x = (VF)(block[i * V + j]);   \
    s##i = fma(x, w0, s##i);               \
    t##i = fma(x, w1, t##i);               \
  }
              EACH(MULTIPLY)
              w += PANEL;
            }
            p += V * run_step;
          }
#else
          for (IDX l = 0; l < run; ++l) {
            const VF w0 = VLOAD(w), w1 = VLOAD(w + V);
#define MULTIPLY(i)                  \
  {                                  \
    const VF x = (VF)(p[r##i]);      \
    s##i = fma(x, w0, s##i);         \
    t##i = fma(x, w1, t##i);         \
  }
            EACH(MULTIPLY)
            p += run_step;
            w += PANEL;
          }
#endif
#ifdef PARTIAL
#define JOIN(i)      \
  s##i += kept_s##i; \
  t##i += kept_t##i;
          EACH(JOIN)
#endif
        }
      }
    }
#define FINISH(i)                                                                 \
  if (i < rows) {                                                                 \
    s##i = ACTIVATE_LANES(ACTIVATION, s##i);                                        \
    store_some(s##i, y + at + i * row_y, count0);                                 \
    if (count1 > 0) {                                                             \
      t##i = ACTIVATE_LANES(ACTIVATION, t##i);                                      \
      store_some(t##i, y + at + i * row_y + V, count1);                           \
    }                                                                             \
  }
    EACH(FINISH)
  }
}
