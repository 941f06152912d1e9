// The arguments of kernels over windows (common/window.clh).
#pragma once

#include "backends/opencl/recipe.h"
#include "engine/ops/conv_geometry.h"

namespace oncilla::opencl {

// WINDOW_PARAMS: six ints per axis.
inline void AddWindow(const WindowGeometry& g, Dispatch& d) {
  for (const WindowAxis& axis : g.axis) {
    for (const int64_t v :
         {axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.pad_begin}) {
      d.args.push_back(static_cast<int32_t>(v));
    }
  }
}

// Places inside one axis, which kernels compute in int, all fit with room to spare.
inline bool FitsInt(const WindowGeometry& g) {
  constexpr int64_t kMost = int64_t{1} << 29;
  for (const WindowAxis& axis : g.axis) {
    for (const int64_t v : {axis.in, axis.out, axis.extent(), axis.pad_begin + axis.in,
                            axis.pad_end + axis.in, axis.out * axis.stride}) {
      if (v > kMost) return false;
    }
  }
  return g.in_channels <= kMost && g.out_channels <= kMost && g.taps() <= kMost;
}

}  // namespace oncilla::opencl
