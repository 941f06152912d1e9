// requantize: integers x of type X to integers of type Y and another scale (engine/ops/nn/integer.h).
// x is [.., count, inner]; count is 1 where one factor is for all. One work-item per element.
// FIXED: scale is an int and has a shift beside it; WIDE: of x of 64 bits.
// VARIANT: -DX=i32 -DY=u8 -DIDX=int
// VARIANT: -DX=i32 -DY=i8 -DIDX=int -DZERO -DFIXED
// VARIANT: -DX=i64 -DY=i16 -DIDX=long -DZERO -DFIXED -DWIDE
#include "common/dtype.clh"
#include "common/requantize.clh"

__kernel void requantize(__global const MEM(X)* restrict x,
                         __global const FACTOR* restrict scale,
#ifdef FIXED
                         __global const int* restrict shift,
#endif
#ifdef ZERO
                         __global const MEM(Y)* restrict zero,
#endif
                         __global MEM(Y)* restrict y, const IDX total, const IDX count,
                         const IDX inner, const int x_zero, const int left_shift, const int least,
                         const int most) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const IDX place = at / inner % count;
  const long value = (long)x[at] - (long)x_zero;
  SPAN moved = 0;
#ifdef ZERO
  moved = (SPAN)zero[0];
#endif
#ifdef FIXED
#ifdef WIDE
  const SPAN cut = requantized(value, scale[place], shift[place], moved, least, most);
#else
  const long left = value << (32 + left_shift) >> 32;
  const SPAN cut = requantized(left, scale[place], shift[place], moved, least, most);
#endif
#else
  const SPAN cut = requantized(value, scale[place], 0, moved, least, most);
#endif
  STORE(Y, y, at, cut);
}
