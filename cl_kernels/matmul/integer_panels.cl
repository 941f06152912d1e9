// integer_panels: the product of matmul/integer.cl in bytes, for devices that want one work-item per group and
// wide private vectors. Rows, tiles, lines and taps are those of panels.cl; b is packed by
// integer_pack.cl. Differences from zero points are multiplied as floats, which is exact: products are
// below 2^16 and are added up in floats over EXACT of them, which stays below 2^24, and in ints from
// there on. Rows of a are widened V at a time.
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DV=16 -DROWS=8 -DIDX=int -DAXES=0 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DY=u8 -DV=16 -DROWS=6 -DIDX=int -DAXES=0 -DA_ZERO -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DV=16 -DROWS=4 -DIDX=int -DAXES=0 -DA_ZERO -DB_ZERO
// VARIANT: -DX=i8 -DW=i8 -DY=i8 -DV=16 -DROWS=1 -DIDX=int -DAXES=1 -DBIAS -DREQUANTIZED -DFIXED -DZERO
// VARIANT: -DX=i8 -DW=u8 -DY=i32 -DV=8 -DROWS=6 -DIDX=int -DAXES=1 -DA_ZERO -DA_ZEROS -DB_ZERO -DB_ZEROS
// VARIANT: -DX=u8 -DW=u8 -DY=u8 -DV=8 -DROWS=4 -DIDX=long -DAXES=2 -DREQUANTIZED
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DV=8 -DROWS=1 -DIDX=int -DAXES=0 -DA_ZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i16 -DV=4 -DROWS=4 -DIDX=int -DAXES=0 -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DV=4 -DROWS=1 -DIDX=int -DAXES=0
// VARIANT: -DX=u8 -DW=i8 -DY=i32 -DV=16 -DROWS=8 -DIDX=int -DAXES=0 -DA_ZERO -DREQUANTIZED -DREAL -DTERM
#include "common/batch.clh"
#include "common/integer_product.clh"
#define PANEL (2 * V)
#define EXACT 256
#define VF CAT(float, V)
#define VI CAT(int, V)
#define FLOATS(p) CAT(convert_float, V)(CAT(vload, V)(0, p))

#if ROWS == 8
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#elif ROWS == 6
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5)
#elif ROWS == 4
#define EACH(f) f(0) f(1) f(2) f(3)
#else
#define EACH(f) f(0)
#endif

// The first `count` numbers at p, of ints or floats.
VI some_ints(__global const int* p, const IDX count) {
  if (count >= V) return CAT(vload, V)(0, p);
  int some[V];
  for (int i = 0; i < V; ++i) some[i] = i < count ? p[i] : 0;
  return CAT(vload, V)(0, some);
}
VF some_floats(__global const float* p, const IDX count) {
  if (count >= V) return CAT(vload, V)(0, p);
  float some[V];
  for (int i = 0; i < V; ++i) some[i] = i < count ? p[i] : 0.0f;
  return CAT(vload, V)(0, some);
}

#ifdef B_ZEROS
VF zeros_of(__global const MEM(W)* p, const IDX count) {
  float some[V];
  for (int i = 0; i < V; ++i) some[i] = i < count ? (float)p[i] : 0.0f;
  return CAT(vload, V)(0, some);
}
#define B_ZERO_VECTOR(column, count) zeros_of(b_zero + (column), count)
#elif defined(B_ZERO)
#define B_ZERO_VECTOR(column, count) (VF)((float)b_zero[0])
#endif
#ifdef B_ZERO
#define LESS_ZERO(v, zero) ((v) - (zero))
#else
#define LESS_ZERO(v, zero) (v)
#endif
#ifdef BIAS
#define BIAS_VECTOR(column, count) some_ints(bias + (column), count)
#else
#define BIAS_VECTOR(column, count) 0
#endif

// CAT within what CAT made.
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
// Stores the first `count` results of a row; `column` is the first one's place in the scales.
#define CONVERT_i8 JOINED(convert_char, V)
#define CONVERT_u8 JOINED(convert_uchar, V)
#define CONVERT_i16 JOINED(convert_short, V)
#define CONVERT_u16 JOINED(convert_ushort, V)
#define CONVERT_i32 JOINED(convert_int, V)
#if defined(REQUANTIZED) && !defined(FIXED) && CAT(SMALL_, Y)
// By the rule of requantized(), for all of a vector.
#define RESULTS(sum, column, count)                                                                \
  const VF factor_ = scale_step ? some_floats(scale + (column), count) : (VF)(scale[0]);           \
  const int zero_ = (int)ZERO_HERE;                                                                \
  const VF low_ = (VF)((float)(least - zero_)), high_ = (VF)((float)(most - zero_));               \
  const VF bounded_ = fmin(fmax(CAT(convert_float, V)(sum) * factor_, low_), high_);               \
  const VI results_ = clamp(CAT(CAT(convert_int, V), _rte)(bounded_) + zero_, (VI)(least), (VI)(most));
#elif defined(REQUANTIZED)
#define RESULTS(sum, column, count)                                                                \
  int each_[V];                                                                                    \
  CAT(vstore, V)(sum, 0, each_);                                                                   \
  for (IDX i_ = 0; i_ < min((IDX)V, (IDX)(count)); ++i_) each_[i_] = (int)EPILOGUE(each_[i_], (column) + i_); \
  const VI results_ = CAT(vload, V)(0, each_);
#else
#define RESULTS(sum, column, count) const VI results_ = sum;
#endif
#define STORE_SOME(sum, column, count, to)                                                         \
  {                                                                                                \
    RESULTS(sum, column, count)                                                                    \
    if ((count) >= V) {                                                                            \
      CAT(vstore, V)(CAT(CONVERT_, Y)(results_), 0, to);                                           \
    } else {                                                                                       \
      int some_[V];                                                                                \
      CAT(vstore, V)(results_, 0, some_);                                                          \
      for (int i_ = 0; i_ < (count); ++i_) STORE(Y, to, i_, some_[i_]);                            \
    }                                                                                              \
  }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void integer_panels(
    __global const MEM(X)* restrict a, __global const MEM(W)* restrict b, INTEGER_PARAMS,
    const IDX columns, const IDX row_y, const IDX y_step, const IDX bias_step, const IDX tiles,
    const IDX tiles_per_item, const IDX tiles_per_line, const IDX line_rows, const IDX lines1,
    const IDX lines2, const IDX line_step0, const IDX line_step1, const IDX line_step2,
    const IDX row_step, const IDX run_step, const IDX run, const IDX taps0, const IDX taps1,
    const IDX taps2, const IDX tap_step0, const IDX tap_step1,
    const IDX tap_step2 BATCH_PARAMS EPILOGUE_PARAMS) {
  const IDX panel = get_global_id(1), column = panel * PANEL;
  const IDX count0 = columns - column, count1 = count0 - V;  // columns that each vector has
  IDX z = get_global_id(2), a0 = 0, b0 = panel * PANEL * run * taps0 * taps1 * taps2;
  const IDX y0 = z * y_step + column, place = z * bias_step + column;
  BATCH_OFFSETS(z, a0, b0)
  const IDX first = (IDX)get_global_id(0) * tiles_per_item;
  const IDX last = min(tiles, first + tiles_per_item);
  const VI start0 = BIAS_VECTOR(place, count0);
  VI start1 = 0;
  if (count1 > 0) start1 = BIAS_VECTOR(place + V, count1);
#ifdef B_ZERO
  const VF zero0 = B_ZERO_VECTOR(place, count0);
  VF zero1 = 0;
  if (count1 > 0) zero1 = B_ZERO_VECTOR(place + V, count1);
#endif
  for (IDX tile = first; tile < last; ++tile) {
    const IDX line = tile / tiles_per_line, part = tile % tiles_per_line;
    // The first tiles of a line have a row more; no product here is above the number of rows.
    const IDX even = line_rows / tiles_per_line, more = line_rows % tiles_per_line;
    const IDX row = part * even + min(part, more);
    const IDX rows = even + (part < more ? 1 : 0);
    __global const MEM(X)* base = a + a0 + line % lines2 * line_step2 +
                                 line / lines2 % lines1 * line_step1 +
                                 line / lines2 / lines1 * line_step0 + row * row_step;
    const IDX at = y0 + (line * line_rows + row) * row_y;
#define DECLARE(i)                                                       \
  const IDX r##i = min((IDX)i, rows - 1) * row_step;                     \
  const float x_zero##i = (float)A_ZERO_AT(row + min((IDX)i, rows - 1)); \
  VI s##i = start0, t##i = start1;
    EACH(DECLARE)
    __global const MEM(W)* w = b + b0;
    for (IDX d0_ = 0; d0_ < taps0; ++d0_) {
      for (IDX d1_ = 0; d1_ < taps1; ++d1_) {
        for (IDX d2_ = 0; d2_ < taps2; ++d2_) {
          __global const MEM(X)* p = base + d0_ * tap_step0 + d1_ * tap_step1 + d2_ * tap_step2;
          for (IDX from = 0; from < run; from += EXACT) {
            const IDX end = min(run, from + EXACT);
#define BEGIN(i) VF f##i = 0, g##i = 0;
            EACH(BEGIN)
            for (IDX l = from; l < end; l += V) {
              float block[ROWS * V];
              const IDX n = min((IDX)V, end - l);
#define WIDEN(i)                                                                                  \
  if (n == V && run_step == 1) {                                                                  \
    CAT(vstore, V)(FLOATS(p + r##i) - x_zero##i, 0, block + i * V);                               \
  } else {                                                                                        \
    for (int j = 0; j < n; ++j) block[i * V + j] = (float)p[r##i + j * run_step] - x_zero##i;     \
  }
              EACH(WIDEN)
              for (int j = 0; j < n; ++j) {
                const VF w0 = LESS_ZERO(FLOATS(w), zero0), w1 = LESS_ZERO(FLOATS(w + V), zero1);
#define MULTIPLY(i)                      \
  {                                      \
    const VF u = (VF)(block[i * V + j]); \
    f##i = fma(u, w0, f##i);             \
    g##i = fma(u, w1, g##i);             \
  }
                EACH(MULTIPLY)
                w += PANEL;
              }
              p += V * run_step;
            }
#define ADD(i)                           \
  s##i += CAT(convert_int, V)(f##i);     \
  t##i += CAT(convert_int, V)(g##i);
            EACH(ADD)
          }
        }
      }
    }
#define FINISH(i)                                                                  \
  if (i < rows) {                                                                  \
    STORE_SOME(s##i, place, count0, y + at + i * row_y)                            \
    if (count1 > 0) STORE_SOME(t##i, place + V, count1, y + at + i * row_y + V)    \
  }
    EACH(FINISH)
  }
}
