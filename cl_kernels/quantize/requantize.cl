// requantize: integers x of type X to integers of type Y and another scale (engine/ops/nn/integer.h).
// x is [.., count, inner]; count is 1 where one factor is for all. One work-item per element.
// FIXED: scale is an int and has a shift beside it; WIDE: of x of 64 bits.
// VARIANT: -DX=i32 -DY=u8 -DIDX=int
// VARIANT: -DX=i32 -DY=i8 -DIDX=int -DZERO -DFIXED
// VARIANT: -DX=i64 -DY=i16 -DIDX=long -DZERO -DFIXED -DWIDE
#include "common/dtype.clh"

#ifdef WIDE
long multiply_fixed(const long x, const int multiplier, const int shift) {
  const long reduced = multiplier < 0x7FFF0000 ? ((long)multiplier + (1L << 15)) >> 16 : 0x7FFFL;
  const int total = 15 - shift;
  return (long)(int)((x * reduced + (1L << (total - 1))) >> total);
}
#else
long multiply_fixed(const long x, const int multiplier, const int shift) {
  const int left = max(shift, 0), right = max(-shift, 0);
  const long shifted = x << (32 + left) >> 32;
  if (shifted == -2147483648L && multiplier == -2147483647 - 1) return 2147483647L >> right;
  const long high = (shifted * (long)multiplier + (1L << 30)) >> 31;
  const long mask = (1L << right) - 1;
  const long above = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> right) + ((high & mask) > above ? 1 : 0);
}
#endif

__kernel void requantize(__global const MEM(X)* restrict x,
#ifdef FIXED
                         __global const int* restrict scale, __global const int* restrict shift,
#else
                         __global const float* restrict scale,
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
  long moved = 0;
#ifdef ZERO
  moved = (long)zero[0];
#endif
#ifdef FIXED
#ifdef WIDE
  const long sum = multiply_fixed(value, scale[place], shift[place]) + moved;
#else
  const long sum = multiply_fixed(value << (32 + left_shift) >> 32, scale[place], shift[place]) + moved;
#endif
  const long cut = clamp(sum, (long)least, (long)most);
#else
#ifdef WIDE
  const float real = (float)value * scale[place];
#else
  const float real = (float)(int)value * scale[place];
#endif
  // Cut before it is converted, and again behind it: the bounds may not be floats.
  const float bounded = fmin(fmax(real, (float)((long)least - moved)), (float)((long)most - moved));
  const long cut = clamp((long)rint(bounded) + moved, (long)least, (long)most);
#endif
  STORE(Y, y, at, cut);
}
