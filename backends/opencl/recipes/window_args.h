// The arguments of kernels over windows (common/window.clh).
#pragma once

#include <algorithm>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::opencl {

// WINDOW_PARAMS.
inline void AddWindow(const WindowGeometry& g, DispatchBuilder& b) {
  for (size_t i = 0; i < 3; ++i) {
    const WindowAxis& axis = g.axis[i];
    b.Int({{StrCat("in", i), axis.in},
           {StrCat("out", i), axis.out},
           {StrCat("kernel", i), axis.kernel},
           {StrCat("stride", i), axis.stride},
           {StrCat("dilation", i), axis.dilation},
           {StrCat("pad", i), axis.pad_begin}});
  }
}

// "1x3x3/2" for names of layer classes: taps, then stride and dilation along the last axis if
// either is not one. The axes of a net's windows are alike, so that one of them represents all.
inline std::string WindowText(const WindowGeometry& g) {
  std::string text = StrCat(g.axis[0].kernel, "x", g.axis[1].kernel, "x", g.axis[2].kernel);
  const WindowAxis& along = g.axis[2];
  if (along.stride > 1 || along.dilation > 1) text += StrCat("/", along.stride);
  if (along.dilation > 1) text += StrCat("/", along.dilation);
  return text;
}

// The longest of the loops over a window's axes.
inline int64_t LongestAxis(const WindowGeometry& g) {
  return std::max({g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel});
}

// Checks that indices within one axis, which kernels compute in int, do not overflow.
inline Status CheckSizes(const WindowGeometry& g) {
  constexpr int64_t kMost = int64_t{1} << 29;
  int64_t most = std::max({g.in_channels, g.out_channels, g.taps()});
  for (const WindowAxis& axis : g.axis) {
    most = std::max({most, axis.in, axis.out, axis.extent(), axis.pad_begin + axis.in,
                     axis.pad_end + axis.in, axis.out * axis.stride});
  }
  if (most <= kMost) return Status();
  return Unsupported("opencl: windows over more than 2^29 places");
}

}  // namespace oncilla::opencl
