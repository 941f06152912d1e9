// A convolution as a matrix product, without copying windows.
//
// In a channels-last input, padded once, a row of a window is contiguous in memory (a run), and the
// windows of neighbouring outputs start a constant stride apart. So Conv of any size, stride and
// dilation is C[row][column] = sum over taps and runs of A times B, where rows are output pixels
// (in lines of one output row each), columns the output channels of a group, and B the filter as it
// is stored.
#pragma once

#include "engine/ops/nn/conv_geometry.h"

namespace oncilla {

// Strides and offsets are in elements of the padded input; groups begin in_channels / groups apart.
struct ConvProduct {
  bool pads = false;                        // the input has to be padded
  std::array<int64_t, kMaxSpatial> size;    // of the input after padding
  std::array<int64_t, kMaxSpatial> before;  // zeros before each axis
  int64_t in_floats = 0;                    // elements of the padded input

  int64_t run = 0;                             // contiguous elements of A
  std::array<int64_t, kMaxSpatial> tap_count;  // runs of a window along each axis
  std::array<int64_t, kMaxSpatial> tap_step;
  int64_t line_rows = 0, row_step = 0;
  std::array<int64_t, kMaxSpatial> line_count;  // samples, depth, height
  std::array<int64_t, kMaxSpatial> line_step;
  int64_t columns = 0;

  int64_t taps() const { return tap_count[0] * tap_count[1] * tap_count[2]; }
  int64_t depth() const { return taps() * run; }
  int64_t rows() const { return line_count[0] * line_count[1] * line_count[2] * line_rows; }
};

// Nothing in the geometry may be empty.
ConvProduct ProductOf(const WindowGeometry& g);

}  // namespace oncilla
