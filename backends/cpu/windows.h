// Loops over the windows of a geometry, for plain code. Pixels are counted over the whole tensor,
// samples included; taps over the window, depth first.
#pragma once

#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// Calls f(input pixel, tap) for every tap of output pixel `pixel` that lies in the input, in order.
template <class F>
void ForTaps(const WindowGeometry& g, int64_t pixel, F&& f) {
  const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  const int64_t ow = pixel % width.out, oh = pixel / width.out % height.out;
  const int64_t od = pixel / width.out / height.out % depth.out;
  const int64_t sample = pixel / g.out_pixels();
  const auto td = depth.Seen(od), th = height.Seen(oh), tw = width.Seen(ow);
  for (int64_t kd = td.begin; kd < td.end; ++kd) {
    const int64_t d = sample * depth.in + depth.start(od) + kd * depth.dilation;
    for (int64_t kh = th.begin; kh < th.end; ++kh) {
      const int64_t h = d * height.in + height.start(oh) + kh * height.dilation;
      for (int64_t kw = tw.begin; kw < tw.end; ++kw) {
        f(h * width.in + width.start(ow) + kw * width.dilation,
          (kd * height.kernel + kh) * width.kernel + kw);
      }
    }
  }
}

// An output pixel by its coordinates, for advancing from one pixel to the next without divisions.
struct WindowPlace {
  WindowPlace(const WindowGeometry& g, int64_t pixel) : g(g) {
    for (size_t i = kMaxSpatial; i-- > 0; pixel /= g.axis[i].out) at[i] = pixel % g.axis[i].out;
    sample = pixel;
  }
  void Next() {
    for (size_t i = kMaxSpatial; i-- > 0; at[i] = 0) {
      if (++at[i] < g.axis[i].out) return;
    }
    ++sample;
  }
  // Whether all taps lie in the input.
  bool SeesWhole() const {
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      const int64_t start = g.axis[i].start(at[i]);
      if (start < 0 || start + g.axis[i].extent() > g.axis[i].in) return false;
    }
    return true;
  }
  // The input pixel of the first tap, if all taps lie in the input.
  int64_t FirstPixel() const {
    int64_t pixel = sample;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      pixel = pixel * g.axis[i].in + g.axis[i].start(at[i]);
    }
    return pixel;
  }
  WindowAxis::Taps Seen(size_t i, bool whole) const {
    return whole ? WindowAxis::Taps{0, g.axis[i].kernel} : g.axis[i].Seen(at[i]);
  }

  const WindowGeometry& g;
  int64_t sample = 0;
  std::array<int64_t, kMaxSpatial> at{};
};

// Calls f(input pixel, tap, count) for taps that are contiguous in the window and in the input: for
// a row of the window at a time, if it is not dilated. `whole`: all taps lie in the input.
template <class F>
void ForTapRuns(const WindowPlace& place, bool whole, F&& f) {
  const WindowGeometry& g = place.g;
  const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  const auto td = place.Seen(0, whole), th = place.Seen(1, whole), tw = place.Seen(2, whole);
  for (int64_t kd = td.begin; kd < td.end; ++kd) {
    const int64_t d = place.sample * depth.in + depth.start(place.at[0]) + kd * depth.dilation;
    for (int64_t kh = th.begin; kh < th.end; ++kh) {
      const int64_t h = d * height.in + height.start(place.at[1]) + kh * height.dilation;
      const int64_t line = h * width.in + width.start(place.at[2]);
      const int64_t tap = (kd * height.kernel + kh) * width.kernel;
      if (width.dilation == 1) {
        if (tw.begin < tw.end) f(line + tw.begin, tap + tw.begin, tw.end - tw.begin);
        continue;
      }
      for (int64_t kw = tw.begin; kw < tw.end; ++kw) f(line + kw * width.dilation, tap + kw, 1);
    }
  }
}

// The reverse: calls f(output pixel, tap) for every window that has input pixel `pixel` at a tap.
template <class F>
void ForWindowsOver(const WindowGeometry& g, int64_t pixel, F&& f) {
  // The window that has input `i` at tap `k`, or -1.
  auto window = [](const WindowAxis& axis, int64_t i, int64_t k) -> int64_t {
    const int64_t start = i + axis.pad_begin - k * axis.dilation;
    if (start < 0 || start % axis.stride != 0 || start / axis.stride >= axis.out) return -1;
    return start / axis.stride;
  };
  const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  const int64_t iw = pixel % width.in, ih = pixel / width.in % height.in;
  const int64_t id = pixel / width.in / height.in % depth.in;
  const int64_t sample = pixel / g.in_pixels();
  for (int64_t kd = 0; kd < depth.kernel; ++kd) {
    const int64_t d = window(depth, id, kd);
    for (int64_t kh = 0; d >= 0 && kh < height.kernel; ++kh) {
      const int64_t h = window(height, ih, kh);
      for (int64_t kw = 0; h >= 0 && kw < width.kernel; ++kw) {
        const int64_t w = window(width, iw, kw);
        if (w < 0) continue;
        f(((sample * depth.out + d) * height.out + h) * width.out + w,
          (kd * height.kernel + kh) * width.kernel + kw);
      }
    }
  }
}

}  // namespace oncilla::cpu
