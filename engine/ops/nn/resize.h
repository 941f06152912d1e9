// Attributes of Resize and the weights that follow from them, shared by inference and kernels.
#pragma once

#include <span>

#include "engine/base/work_limits.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, spatial.., C], sizes of the spatial axes -> y. All modes work axis by axis. The formulas are
// those of ONNX's Resize when `scales` are given and TensorFlow's when not (they differ in
// rounding); all coordinates are computed in float, as both do. Scales and region may be plan
// inputs instead, if the model computes them: see SettledResize.
struct ResizeAttrs {
  std::string mode = "nearest";            // nearest, linear, cubic, area
  std::string coordinates = "half_pixel";  // half_pixel, asymmetric, align_corners,
                                           // pytorch_half_pixel, tf_half_pixel,
                                           // half_pixel_symmetric, crop_and_resize
  // round_prefer_floor, round_prefer_ceil (ONNX's, which treat near ties as ties), round
  // (TensorFlow's, ties away from zero), floor, ceil
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  int64_t cubic_steps = 0;  // > 0: the offset is rounded to multiples of 1/steps (TensorFlow: 1024)
  bool exclude_outside = false;
  std::vector<double> scales;  // output size / input size of each spatial axis
  // For crop_and_resize: all begins, then all ends, as fractions of the spatial axes. An output
  // whose sample point lies outside the input is `outside`.
  std::vector<double> region;
  double outside = 0;
  // Where an axis shrinks, the filter of linear or cubic is widened to cover the inputs that an
  // output represents, and its weights are normalised to the sum one.
  bool antialias = false;
  void Fields(auto&& field) {
    field("mode", mode);
    field("coordinates", coordinates);
    field("nearest", nearest);
    field("cubic_a", cubic_a);
    field("cubic_steps", cubic_steps);
    field("exclude_outside", exclude_outside);
    field("scales", scales);
    field("region", region);
    field("outside", outside);
    field("antialias", antialias);
  }
};

// The positions of the outputs of one axis in its input, as a few floats, so that tables on the
// host and kernels on devices compute bit-identical coordinates.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  float before = 0, multiply = 1, divide = 0, offset = 0, after = 0;
  float ratio = 1;  // the width of one output in the input, for area

  // For crop_and_resize: whether output o lies within the input.
  bool Inside(int64_t o) const {
    const float x = At(o);
    return x >= 0 && x <= static_cast<float>(in - 1);
  }
  // Every operation rounds to float; no division when `divide` is 0.
  float At(int64_t o) const {
    float x = (static_cast<float>(o) + before) * multiply;
    if (divide != 0) x /= divide;
    return (offset + x) + after;
  }
};

// The attributes with scales and region taken from the inputs x, sizes, scales?, region?. These
// inputs have a number per axis of x; batch and channels must keep their size and whole region.
Result<ResizeAttrs> SettledResize(ResizeAttrs attrs, std::span<const Fact> inputs);

// The coordinates of spatial axis `axis` (which selects the scale) for these sizes.
Result<ResizeAxis> AxisOf(const ResizeAttrs& attrs, int axis, int64_t in, int64_t out);

// One axis as a table: output o is the sum over t < taps of weight[o * taps + t] times input
// index[o * taps + t]. Indices lie in the input; nearest has one tap of weight 1.
struct ResizeTaps {
  int64_t taps = 1;
  HostVector<int32_t> index;
  HostVector<float> weight;
};

Result<ResizeTaps> TapsOf(const ResizeAttrs& attrs, int axis, int64_t in, int64_t out);

}  // namespace oncilla
