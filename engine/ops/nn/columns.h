// Attributes of ops on the columns that a sliding window extracts from an image: summing them back
// into an image, and the convolution whose taps are displaced by offsets.
#pragma once

#include <array>
#include <span>

#include "engine/ops/nn/conv_geometry.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, C * taps, L], *image[spatial], *block[spatial] -> y[N, C, image..]: column l of x is the
// content of a window of size `block` at position l, and y is the sum of all. Elements in the
// padding are dropped. pads = all begins, then all ends; empty lists mean ones and zeros.
struct FoldColumnsAttrs {
  std::vector<int64_t> strides, dilations, pads;
  void Fields(auto&& field) {
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
  }
};
// The axes of the image, with `out` window positions each; image and block must be known.
Result<std::vector<WindowAxis>> FoldAxes(const FoldColumnsAttrs& attrs,
                                         std::span<const int64_t> image,
                                         std::span<const int64_t> block);

// x[N, H, W, C], filter[kh, kw, C / groups, Cout], offset[N, oh, ow, offset_groups * kh * kw * 2],
// bias[Cout]?, mask[N, oh, ow, offset_groups * kh * kw]? -> y[N, oh, ow, Cout]: a convolution whose
// taps are displaced by the offsets (rows, columns), interpolated bilinearly (zeros outside) and
// multiplied by the mask.
struct DeformConvAttrs {
  std::vector<int64_t> strides, dilations, pads;
  int64_t groups = 1, offset_groups = 1;
  void Fields(auto&& field) {
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("groups", groups);
    field("offset_groups", offset_groups);
  }
};
// Rows and columns of the window; shapes of x and filter must be known.
Result<std::array<WindowAxis, 2>> DeformAxes(const DeformConvAttrs& attrs, const Shape& x,
                                             const Shape& filter);

}  // namespace oncilla
