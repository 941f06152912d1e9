// Attributes of ops that interpolate an image at positions given by a tensor.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, spatial.., C], grid[N, out.., spatial] -> y[N, out.., C]: ONNX's GridSample with 2 or 3
// spatial axes (cubic: 2). Positions run from -1 to 1 over the image, with the last axis of x
// first; these are the centers of the outermost pixels with align_corners, else their edges. A
// position that is NaN counts as -1, beyond the image.
struct GridSampleAttrs {
  std::string mode = "linear";    // nearest (ties to even), linear, cubic
  std::string padding = "zeros";  // zeros, border, reflection
  bool align_corners = false;
  void Fields(auto&& field) {
    field("mode", mode);
    field("padding", padding);
    field("align_corners", align_corners);
  }
};

// x[N, H, W, C], rois[R, 4] (x1, y1, x2, y2), batch[R] -> y[R, height, width, C]: ONNX's RoiAlign.
// Each bin of a region is the mean, or by ONNX's rule the largest weighted pixel, of samples x
// samples points (0: one per pixel). Regions are multiplied by `scale`; with `half_pixel` they are
// then shifted by half a pixel and may be narrower than one.
struct RoiAlignAttrs {
  std::string mode = "avg";  // avg, max
  int64_t height = 1, width = 1;
  int64_t samples = 0;
  double scale = 1;
  bool half_pixel = true;
  void Fields(auto&& field) {
    field("mode", mode);
    field("height", height);
    field("width", width);
    field("samples", samples);
    field("scale", scale);
    field("half_pixel", half_pixel);
  }
};
// The most points per axis that a bin may have; a wider region fails the run.
inline constexpr int kMostRoiSamples = 1024;

// x[N, H, W, C], rois[R, 5] (image, x1, y1, x2, y2) -> y[R, height, width, C]: ONNX's MaxRoiPool.
// Regions are multiplied by `scale` and rounded to whole pixels, both ends included; a bin is the
// maximum of its pixels, and zero if it has none in the image. Bins may share pixels.
struct MaxRoiPoolAttrs {
  int64_t height = 1, width = 1;
  double scale = 1;
  void Fields(auto&& field) {
    field("height", height);
    field("width", width);
    field("scale", scale);
  }
};
// The largest distance of a region from the image, in pixels; a region beyond that fails the run.
inline constexpr int kFarthestRoi = 1 << 24;

}  // namespace oncilla
