// The places of GridSample along each axis, and the products of their weights.
#include "backends/cpu/algorithms/grid_taps.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/indices.h"

namespace oncilla::cpu {
namespace {

// Reflects x back and forth between two ends.
float Reflect(float x, float low, float high) {
  const float range = high - low;
  if (!(range > 0)) return low;
  if (x >= low && x <= high) return x;
  const float beyond = x < low ? low - x : x - high;
  const float times = std::floor(beyond / range), rest = beyond - times * range;
  const bool even = std::fmod(times, 2.0f) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

double Cubic(double x) {
  constexpr double a = -0.75;
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

}  // namespace

GridTaps::Axis::Axis(int64_t n, Padding p, bool align_corners)
    : size(n),
      padding(p),
      align(align_corners),
      low(align_corners ? 0.0f : -0.5f),
      high(static_cast<float>(n) - (align_corners ? 1.0f : 0.5f)) {}

float GridTaps::Axis::Place(float g) const {
  if (std::isnan(g)) g = -3;
  g = std::clamp(g, -1e6f, 1e6f);
  const auto n = static_cast<float>(size);
  float x = align ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  if (x < low || x > high) {
    if (padding == Padding::kBorder) x = std::clamp(x, 0.0f, LastPlace(size));
    if (padding == Padding::kReflection) x = Reflect(x, low, high);
  }
  return x;
}

int64_t GridTaps::Axis::Pixel(float x) const {
  const float last = LastPlace(size);
  if (x >= 0 && x <= last) return static_cast<int64_t>(x);
  if (padding == Padding::kZeros) return -1;
  if (padding == Padding::kReflection) x = Reflect(x, low, high);
  return static_cast<int64_t>(std::clamp(x, 0.0f, last));
}

GridTaps::GridTaps(const GridSampleAttrs& attrs, const Shape& image)
    : mode_(attrs.mode == "nearest"  ? Mode::kNearest
            : attrs.mode == "linear" ? Mode::kLinear
                                     : Mode::kCubic) {
  const Padding padding = attrs.padding == "zeros"    ? Padding::kZeros
                          : attrs.padding == "border" ? Padding::kBorder
                                                      : Padding::kReflection;
  for (int i = 1; i + 1 < image.rank(); ++i) {
    axes_.emplace_back(image[i], padding, attrs.align_corners);
  }
}

int GridTaps::most() const {
  const int along = mode_ == Mode::kNearest ? 1 : mode_ == Mode::kLinear ? 2 : 4;
  int all = 1;
  for (int i = 0; i < spatial(); ++i) all *= along;
  return all;
}

// The pixels of one axis that a coordinate samples, with their weights.
int GridTaps::TapsOf(const Axis& axis, float x, Tap* taps) const {
  int count = 0;
  const auto add = [&](float at, double weight) {
    const int64_t pixel = axis.Pixel(at);
    if (pixel >= 0) taps[count++] = {pixel, weight};
  };
  if (mode_ == Mode::kNearest) {
    add(std::nearbyint(x), 1.0);
    return count;
  }
  const float base = std::floor(x);
  const double t = static_cast<double>(x - base);
  if (mode_ == Mode::kLinear) {
    add(base, 1 - t);
    add(base + 1, t);
    return count;
  }
  for (int k = 0; k < 4; ++k) add(base + static_cast<float>(k - 1), Cubic(t - (k - 1)));
  return count;
}

int GridTaps::Find(int64_t n, const float* place, Tap* taps) const {
  int all = 1;
  taps[0] = {n, 1.0};
  for (int i = 0; i < spatial(); ++i) {
    const Axis& axis = axes_[static_cast<size_t>(i)];
    Tap along[4];
    const int count = TapsOf(axis, axis.Place(place[spatial() - 1 - i]), along);
    // Backwards, so that each tap is read before those that it becomes take its place.
    for (int s = all; s-- > 0;) {
      const Tap outer = taps[s];
      for (int k = count; k-- > 0;) {
        taps[s * count + k] = {outer.pixel * axis.size + along[k].pixel,
                               outer.weight * along[k].weight};
      }
    }
    all *= count;
  }
  return all;
}

}  // namespace oncilla::cpu
