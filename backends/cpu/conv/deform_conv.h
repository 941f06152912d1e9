// Interpolation of pixels in the fast DeformConv.
#pragma once

#include <array>

#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// Output pixels are counted over samples, rows and columns; offset[pixel][offset_groups][taps][2],
// mask[pixel][offset_groups][taps].
struct DeformPlaces {
  std::array<WindowAxis, 2> axes;
  int64_t channels = 0, offset_groups = 1;
  const float* x = nullptr;
  const float* offset = nullptr;
  const float* mask = nullptr;  // null: ones
  int64_t taps() const { return axes[0].kernel * axes[1].kernel; }
};

}  // namespace oncilla::cpu
