// The pixels that GridSample reads for a position, and their weights. Coordinates are computed in
// float, as on devices, so that the same pixels are chosen; weights are in double.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/nn/sampling.h"
#include "engine/tensor/shape.h"

namespace oncilla::cpu {

struct Tap {
  int64_t pixel;
  double weight;
};

class GridTaps {
 public:
  static constexpr int kMost = 64;  // four along each of three axes

  // `image` is [N, spatial.., C].
  GridTaps(const GridSampleAttrs& attrs, const Shape& image);

  int spatial() const { return static_cast<int>(axes_.size()); }
  int most() const;  // the largest number of taps of a position
  // Finds the taps of a position in sample `n`, with pixels counted from the first sample's; none
  // if all its pixels are beyond the image. `place` has a coordinate for each axis, the last axis
  // first, as in a grid.
  int Find(int64_t n, const float* place, Tap* taps) const;

 private:
  enum class Mode { kNearest, kLinear, kCubic };
  enum class Padding { kZeros, kBorder, kReflection };

  // One axis of the image, and how coordinates are mapped to it.
  struct Axis {
    int64_t size;
    Padding padding;
    bool align;
    float low, high;  // the ends for reflection

    Axis(int64_t n, Padding p, bool align_corners);
    // Converts a grid coordinate to pixels.
    float Place(float g) const;
    // The pixel at an integer coordinate, or -1 for none.
    int64_t Pixel(float x) const;
  };

  int TapsOf(const Axis& axis, float x, Tap* taps) const;

  Mode mode_;
  std::vector<Axis> axes_;
};

}  // namespace oncilla::cpu
