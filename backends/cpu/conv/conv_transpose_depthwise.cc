// Depthwise ConvTranspose by output rows, once per instruction set.
//
// Output o sees input (o + pad - k * dilation) / stride through tap k, where this is whole. The
// taps of an output depend on (o + pad) % stride alone, so there is a table of them for each
// remainder. Taps that see what lies outside the input are left out.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/conv_transpose_depthwise.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/conv_transpose_depthwise.h"

#include <cmath>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/even_parts.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

#ifndef ONCILLA_CPU_CONV_TRANSPOSE_DEPTHWISE_
#define ONCILLA_CPU_CONV_TRANSPOSE_DEPTHWISE_
namespace oncilla::cpu {

// The taps of one axis by the remainders of its outputs.
class SpreadTaps {
 public:
  struct Tap {
    int64_t k = 0, input = 0;  // counted from the quotient of the output
  };

  explicit SpreadTaps(const WindowAxis& axis) : axis_(axis), of_(static_cast<size_t>(axis.stride)) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t r = k * axis.dilation % axis.stride;
      of_[static_cast<size_t>(r)].push_back({k, (r - k * axis.dilation) / axis.stride});
    }
  }

  // Calls f(tap, input) for what output `o` sees.
  template <class F>
  void ForSeen(int64_t o, F&& f) const {
    const int64_t at = o + axis_.pad_begin, rest = at % axis_.stride;
    const int64_t remainder = rest < 0 ? rest + axis_.stride : rest;
    const int64_t first = (at - remainder) / axis_.stride;
    for (const Tap& tap : of_[static_cast<size_t>(remainder)]) {
      const int64_t input = first + tap.input;
      if (input >= 0 && input < axis_.out) f(tap.k, input);
    }
  }

 private:
  const WindowAxis axis_;
  std::vector<std::vector<Tap>> of_;
};

// What all rows share. T is the type in memory.
template <class T>
struct DepthwiseSpread {
  const WindowGeometry& g;
  const SpreadTaps &depth, &height, &width;
  const T *x, *filter, *bias;  // bias may be null
  T* y;
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// Output rows [begin, end), counted over samples, depth and height.
template <class T>
void SpreadRows(const DepthwiseSpread<T>& s, int64_t begin, int64_t end) {
  constexpr Floats d;
  const WindowAxis &depth = s.g.axis[0], &height = s.g.axis[1], &width = s.g.axis[2];
  const int64_t channels = s.g.in_channels;
  absl::InlinedVector<const T*, 16> inputs, filters, from, weights;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t sample = row / height.in / depth.in;
    inputs.clear();
    filters.clear();
    s.depth.ForSeen(row / height.in % depth.in, [&](int64_t kd, int64_t id) {
      s.height.ForSeen(row % height.in, [&](int64_t kh, int64_t ih) {
        const int64_t line = (sample * depth.out + id) * height.out + ih;
        inputs.push_back(s.x + line * width.out * channels);
        filters.push_back(s.filter + (kd * height.kernel + kh) * width.kernel * channels);
      });
    });
    T* y = s.y + row * width.in * channels;
    for (int64_t o = 0; o < width.in; ++o, y += channels) {
      from.clear();
      weights.clear();
      s.width.ForSeen(o, [&](int64_t k, int64_t i) {
        for (size_t r = 0; r < inputs.size(); ++r) {
          from.push_back(inputs[r] + i * channels);
          weights.push_back(filters[r] + k * channels);
        }
      });
      for (int64_t c = 0; c < channels; c += kLanes) {
        const int64_t left = channels - c;
        Vector sum = s.bias != nullptr ? LoadSome(s.bias + c, left) : hn::Zero(d);
        for (size_t t = 0; t < from.size(); ++t) {
          sum = hn::MulAdd(LoadSome(from[t] + c, left), LoadSome(weights[t] + c, left), sum);
        }
        StoreSome(sum, y + c, left);
      }
    }
  }
}
void FloatSpread(const DepthwiseSpread<float>& s, int64_t begin, int64_t end) {
  SpreadRows(s, begin, end);
}
void HalfSpread(const DepthwiseSpread<Half>& s, int64_t begin, int64_t end) {
  SpreadRows(s, begin, end);
}
void BFloat16Spread(const DepthwiseSpread<BFloat16>& s, int64_t begin, int64_t end) {
  SpreadRows(s, begin, end);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(FloatSpread);
HWY_EXPORT(HalfSpread);
HWY_EXPORT(BFloat16Spread);

void Rows(const DepthwiseSpread<float>& s, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(FloatSpread)(s, begin, end);
}
void Rows(const DepthwiseSpread<Half>& s, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(HalfSpread)(s, begin, end);
}
void Rows(const DepthwiseSpread<BFloat16>& s, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BFloat16Spread)(s, begin, end);
}

template <class T>
class DepthwiseConvTranspose : public CpuKernel {
 public:
  DepthwiseConvTranspose(const NodeView& node, const WindowGeometry& g)
      : CpuKernel(node), g_(g), depth_(g.axis[0]), height_(g.axis[1]), width_(g.axis[2]) {}
  std::string description() const override { return "rows of channels"; }

  Status Run(const Args& args) const override {
    const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
    const DepthwiseSpread<T> s = {
        g_, depth_, height_, width_, args.In<T>(0), args.In<T>(1), bias, args.Out<T>(0)};
    const int64_t rows = g_.batch * g_.axis[0].in * g_.axis[1].in;
    // A part is worth some microseconds.
    const double work = static_cast<double>(rows * g_.axis[2].in * g_.in_channels) / 30'000;
    ForParts(args.threads, rows, EvenParts(args.threads, rows, static_cast<int64_t>(work) + 1),
             [&](int64_t begin, int64_t end, int) { Rows(s, begin, end); });
    return Status();
  }

 private:
  const WindowGeometry g_;
  const SpreadTaps depth_, height_, width_;
};

}  // namespace

bool IsDepthwiseConvTranspose(const Shape& filter, int64_t groups) {
  return filter[filter.rank() - 2] == 1 && groups > 1 && filter.back() == groups;
}

std::unique_ptr<CpuKernel> MakeDepthwiseConvTranspose(const NodeView& node,
                                                      const WindowGeometry& g) {
  std::unique_ptr<CpuKernel> kernel;
  ForCarried(node.inputs[1].dtype, [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<DepthwiseConvTranspose<T>>(node, g);
  });
  return kernel;
}

}  // namespace oncilla::cpu
#endif
