// conv_integer: sums of (x - x_zero) * (filter - filter_zero) over taps and channels of a group, plus
// bias, in integers of type S (int or long), which wrap around. Layouts as in direct.cl. One work-item
// per element of y, channels fastest. X_ZEROS: one zero point for each sample; FILTER_ZEROS: one for
// each output channel.
// PACKED: the filter lies in words (matmul/integer_pack.cl), its groups group_step words apart.
// REQUANTIZED: sums become integers of type Y (common/requantize.clh).
// QUADS: of bytes, depthwise (one filter for each channel), with channels that are multiples of four, of
// which a work-item takes four side by side; total counts these.
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=i32 -DIDX=int
// VARIANT: -DX=i16 -DW=i8 -DS=i64 -DY=i64 -DIDX=long -DX_ZERO -DFILTER_ZERO -DFILTER_ZEROS -DBIAS
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=u8 -DIDX=int -DREQUANTIZED -DZERO
// VARIANT: -DX=i16 -DW=i8 -DS=i64 -DY=i16 -DIDX=long -DX_ZERO -DFILTER_ZERO -DFILTER_ZEROS -DBIAS -DREQUANTIZED -DFIXED -DWIDE
// VARIANT: -DX=u8 -DW=u8 -DS=i32 -DY=u8 -DIDX=int -DX_ZERO -DX_ZEROS -DPACKED -DREQUANTIZED -DZERO
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=u8 -DIDX=int -DQUADS -DX_ZERO -DBIAS -DREQUANTIZED -DZERO
// VARIANT: -DX=i8 -DW=u8 -DS=i32 -DY=i32 -DIDX=long -DQUADS -DFILTER_ZERO -DFILTER_ZEROS
// VARIANT: -DX=u8 -DW=i8 -DS=i32 -DY=i32 -DIDX=int -DQUADS -DX_ZERO -DBIAS -DREQUANTIZED -DREAL -DTERM
#include "common/dtype.clh"
#include "common/requantize.clh"
#include "common/window.clh"
#include "common/words.clh"

#ifdef QUADS
#define LANES 4
#define SUMS int4
#define TAKE(type, p) convert_int4(*(__global const MEM4(type)*)(p))
#else
#define LANES 1
#define SUMS MEM(S)
#define TAKE(type, p) ((MEM(S))*(p))
#endif

__kernel void conv_integer(__global const MEM(X)* restrict x, __global const MEM(W)* restrict filter,
#ifdef X_ZERO
                           __global const MEM(X)* restrict x_zero,
#endif
#ifdef FILTER_ZERO
                           __global const MEM(W)* restrict filter_zero,
#endif
#ifdef BIAS
                           __global const MEM(S)* restrict bias,
#endif
                           __global MEM(Y)* restrict y, const IDX total, const int channels,
                           const int out_channels, const int in_group, const int out_group,
#ifdef PACKED
                           const IDX group_step,
#endif
                           WINDOW_PARAMS EPILOGUE_PARAMS) {
  const IDX at = get_global_id(0);
  if (at >= total) return;
  const int c = at % (out_channels / LANES) * LANES;
  const IDX pixel = at / (out_channels / LANES);
  const int o2 = pixel % out2, o1 = pixel / out2 % out1, o0 = pixel / out2 / out1 % out0;
  const IDX sample = pixel / out2 / out1 / out0;
  const int s0 = o0 * stride0 - pad0, s1 = o1 * stride1 - pad1, s2 = o2 * stride2 - pad2;
  const int l0 = last_tap(s0, dilation0, kernel0, in0), l1 = last_tap(s1, dilation1, kernel1, in1);
  const int l2 = last_tap(s2, dilation2, kernel2, in2);
  SUMS x_moved = 0, w_moved = 0, sum = 0;
#ifdef X_ZEROS
  x_moved = x_zero[sample];
#elif defined(X_ZERO)
  x_moved = x_zero[0];
#endif
#ifdef FILTER_ZEROS
  w_moved = TAKE(W, filter_zero + c);
#elif defined(FILTER_ZERO)
  w_moved = filter_zero[0];
#endif
#ifdef BIAS
  sum = TAKE(S, bias + c);
#endif
  for (int k0 = first_tap(s0, dilation0); k0 < l0; ++k0) {
    for (int k1 = first_tap(s1, dilation1); k1 < l1; ++k1) {
      for (int k2 = first_tap(s2, dilation2); k2 < l2; ++k2) {
        const IDX from = ((sample * in0 + s0 + k0 * dilation0) * in1 + s1 + k1 * dilation1) * in2 +
                         s2 + k2 * dilation2;
        const IDX x_at = from * channels + c / out_group * in_group;
        const IDX tap = (k0 * kernel1 + k1) * kernel2 + k2;
#ifdef PACKED
        const IDX matrix = c / out_group * group_step, k_at = tap * ((in_group + 3) / 4 * 4);
#define FILTER(i) (MEM(S))UNPACKED(filter, matrix, (out_group + 3) / 4 * 4, c % out_group, k_at + i)
#else
        const IDX w_at = tap * in_group * out_channels + c;
#define FILTER(i) TAKE(W, filter + w_at + (IDX)i * out_channels)
#endif
        for (int i = 0; i < in_group; ++i) {
          sum += (TAKE(X, x + x_at + i) - x_moved) * (FILTER(i) - w_moved);
        }
      }
    }
  }
#ifdef QUADS
  MEM4(Y) four;
  STORE(Y, (MEM(Y)*)&four, 0, EPILOGUE(sum.x, c));
  STORE(Y, (MEM(Y)*)&four, 1, EPILOGUE(sum.y, c + 1));
  STORE(Y, (MEM(Y)*)&four, 2, EPILOGUE(sum.z, c + 2));
  STORE(Y, (MEM(Y)*)&four, 3, EPILOGUE(sum.w, c + 3));
  *(__global MEM4(Y)*)(y + 4 * at) = four;
#else
  STORE(Y, y, at, EPILOGUE(sum, c));
#endif
}
