// Strides and sizes of a convolution as a matrix product.
#include "engine/ops/nn/conv_product.h"

namespace oncilla {

ConvProduct ProductOf(const WindowGeometry& g) {
  ConvProduct p;
  const int64_t channels = g.in_channels;
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    const WindowAxis& axis = g.axis[i];
    const int64_t needed = (axis.out - 1) * axis.stride + axis.extent();
    const bool padded = axis.pad_begin > 0 || needed > axis.in;
    p.pads |= padded;
    p.size[i] = padded ? needed : axis.in;
    p.before[i] = padded ? axis.pad_begin : 0;
  }
  const std::array<int64_t, kMaxSpatial> step = {p.size[1] * p.size[2] * channels,
                                                 p.size[2] * channels, channels};
  p.in_floats = SaturatingMul(g.batch, SaturatingMul(p.size[0], step[0]));
  // The channels of a window's row are contiguous unless the window has dilation or groups.
  const WindowAxis& width = g.axis[2];
  const bool whole_rows = g.groups == 1 && width.dilation == 1;
  p.run = whole_rows ? width.kernel * channels : channels / g.groups;
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    p.tap_count[i] = i == 2 && whole_rows ? 1 : g.axis[i].kernel;
    p.tap_step[i] = g.axis[i].dilation * step[i];
  }
  p.columns = g.out_channels / g.groups;
  p.row_step = width.stride * channels;
  if (!p.pads && g.taps() == 1 && g.in_pixels() == g.out_pixels()) {  // 1x1: all pixels are one row
    // Strides above 1 belong to axes of one pixel here.
    p.row_step = channels;
    p.line_rows = g.batch * g.out_pixels();
    p.line_count = {1, 1, 1};
    p.line_step = {0, 0, 0};
  } else {
    p.line_rows = width.out;
    p.line_count = {g.batch, g.axis[0].out, g.axis[1].out};
    p.line_step = {p.size[0] * step[0], g.axis[0].stride * step[0], g.axis[1].stride * step[1]};
  }
  return p;
}

}  // namespace oncilla
