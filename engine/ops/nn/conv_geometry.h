// The geometry of sliding windows: which inputs an output of Conv, ConvTranspose or a pool reads.
//
// The only implementation of padding modes and output sizes, used by inference and by every
// backend's kernels. Kernels get a geometry of exactly three spatial axes (depth, height, width);
// axes that a node lacks come first and have size one.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/tensor/shape.h"

namespace oncilla {

inline constexpr int kMaxSpatial = 3;

enum class AutoPad : uint8_t { kExplicit, kValid, kSameUpper, kSameLower };

// The windows as attributes describe them, checked, with defaults filled in. Index: spatial axis.
struct WindowSpec {
  int spatial = 0;
  AutoPad auto_pad = AutoPad::kExplicit;
  bool ceil = false;  // pools: count a last window that extends beyond the end
  std::array<int64_t, kMaxSpatial> stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, kMaxSpatial> pad_begin{0, 0, 0}, pad_end{0, 0, 0};
};

// Empty lists mean ones and zeros; `pads` is all begins, then all ends. `auto_pad` is explicit,
// valid, same_upper or same_lower; pads are allowed with explicit only.
Result<WindowSpec> MakeWindowSpec(int spatial, std::span<const int64_t> strides,
                                  std::span<const int64_t> dilations, std::span<const int64_t> pads,
                                  std::string_view auto_pad);

// One axis, all sizes known: output o reads inputs o * stride - pad_begin + k * dilation for k in
// [0, kernel), as far as they lie in [0, in).
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // The first input of window o; negative within the padding.
  int64_t start(int64_t o) const { return o * stride - pad_begin; }
  // The taps [begin, end) of window o that lie in the input.
  struct Taps {
    int64_t begin, end;
  };
  Taps Seen(int64_t o) const {
    const int64_t s = start(o), up = dilation - 1;
    return {s < 0 ? (up - s) / dilation : 0,
            s >= in ? 0 : std::min(kernel, (in - s + up) / dilation)};
  }
  friend bool operator==(const WindowAxis&, const WindowAxis&) = default;
};

// For Conv and pools. With "same", the output size is ceil(in / stride) and an odd padding has its
// larger part at the end (upper) or at the beginning (lower). If not even one window fits, there is
// no output when less than two strides are missing, and an error when more are (TensorFlow).
Result<WindowAxis> SlideAxis(const WindowSpec& spec, int axis, int64_t in, int64_t kernel);

// For ConvTranspose: the axis of the convolution that it transposes. `small` is the size of its
// input (the `out` of the result); its output size is the result's `in`. `asked` is the requested
// output size, < 0 for none. ONNX's rules, which include TensorFlow's: a requested size determines
// the padding of "same", and under explicit or valid padding must be one that a convolution maps to
// `small`.
Result<WindowAxis> SpreadAxis(const WindowSpec& spec, int axis, int64_t small, int64_t kernel,
                              int64_t output_pad, int64_t asked);

// The output size of SlideAxis or SpreadAxis from partly known sizes; an unchanged size keeps its
// name.
Result<Dim> SlideDim(const WindowSpec& spec, int axis, const Dim& in, const Dim& kernel);
Result<Dim> SpreadDim(const WindowSpec& spec, int axis, const Dim& small, const Dim& kernel,
                      int64_t output_pad, const Dim& asked);

// A whole window op on channels-last tensors. For ConvTranspose x is the small side: the op reads
// [batch, axis.out.., in_channels] and writes [batch, axis.in.., out_channels].
struct WindowGeometry {
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::array<WindowAxis, kMaxSpatial> axis;  // depth, height, width

  int64_t in_pixels() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
};

}  // namespace oncilla
