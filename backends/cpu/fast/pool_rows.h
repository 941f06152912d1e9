// One pool at known shapes, for the code that is compiled once per instruction set.
#pragma once

#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// The result for a window: its largest number, the mean, the sum of magnitudes, or the root of the
// sum of squares.
enum class PoolKind : uint8_t { kMaximum, kAverage, kSumAbs, kRootSquares };

// x and y are of `dtype`: f32, f16 or bf16; for a maximum also u8 and i8.
struct PoolRows {
  WindowGeometry geometry;
  PoolKind kind = PoolKind::kMaximum;
  bool count_pads = false;
  DType dtype = DType::kF32;
  const void* x = nullptr;
  void* y = nullptr;

  // The divisor's share of one axis: taps of window o in the input, or up to the end of padding.
  int64_t Counted(int axis, int64_t o) const {
    const WindowAxis& a = geometry.axis[static_cast<size_t>(axis)];
    const auto seen = a.Seen(o);
    if (!count_pads) return std::max<int64_t>(0, seen.end - seen.begin);
    const int64_t room = a.in + a.pad_end - a.start(o);
    return std::min(a.kernel, (room + a.dilation - 1) / a.dilation);
  }
};

}  // namespace oncilla::cpu
