// Fast ConvInteger of bytes with one input and one output channel in each group: vectors of
// channels, the sums of a few of them in registers while the window passes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/integer_depthwise.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/vector.inl.h"
#include "backends/cpu/windows.h"
#include "engine/ops/nn/integer.h"

#ifndef ONCILLA_FAST_INTEGER_DEPTHWISE_TYPES
#define ONCILLA_FAST_INTEGER_DEPTHWISE_TYPES
namespace oncilla::cpu {

// A pixel of the input and the weights it is multiplied with, less their zero points.
struct IntegerTap {
  const std::byte* x = nullptr;
  const int32_t* weights = nullptr;
};
// The taps of one pixel of the output.
struct IntegerTaps {
  const IntegerTap* taps = nullptr;
  size_t count = 0;
  bool is_signed = false;
  int32_t zero = 0;
  const int32_t* bias = nullptr;  // or null
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

using Sums = hn::ScalableTag<int32_t>;

// kVectors vectors of channels from `c` on.
template <class T, int kVectors>
HWY_INLINE void SumChannels(const IntegerTaps& t, int64_t c, int32_t* y) {
  constexpr Sums d;
  constexpr hn::Rebind<T, Sums> bytes;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d, t.zero);
  hn::Vec<Sums> sums[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = t.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, t.bias + c + v * lanes);
  }
  for (size_t i = 0; i < t.count; ++i) {
    const T* x = reinterpret_cast<const T*>(t.taps[i].x) + c;
    const int32_t* w = t.taps[i].weights + c;
    ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
      const auto given = hn::Sub(hn::PromoteTo(d, hn::LoadU(bytes, x + v * lanes)), zero);
      sums[v] = hn::Add(sums[v], hn::Mul(given, hn::LoadU(d, w + v * lanes)));
    }
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, y + c + v * lanes);
}

template <class T>
HWY_INLINE void SumPixel(const IntegerTaps& t, int64_t channels, int32_t* y) {
  constexpr Sums d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) SumChannels<T, 4>(t, c, y);
  for (; c + lanes <= channels; c += lanes) SumChannels<T, 1>(t, c, y);
  for (; c < channels; ++c) {
    auto sum = static_cast<uint32_t>(t.bias == nullptr ? 0 : t.bias[c]);
    for (size_t i = 0; i < t.count; ++i) {
      const int32_t x = reinterpret_cast<const T*>(t.taps[i].x)[c] - t.zero;
      sum += static_cast<uint32_t>(x * t.taps[i].weights[c]);
    }
    y[c] = static_cast<int32_t>(sum);
  }
}

void SumTaps(const IntegerTaps& t, int64_t channels, int32_t* y) {
  if (t.is_signed) return SumPixel<int8_t>(t, channels, y);
  SumPixel<uint8_t>(t, channels, y);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(SumTaps);

// A byte, from memory of its type.
int32_t ByteAt(const Args& args, size_t input, int64_t i) {
  return args.in(input).dtype == DType::kI8 ? int32_t{args.In<int8_t>(input)[i]}
                                            : int32_t{args.In<uint8_t>(input)[i]};
}

class FastIntegerDepthwise : public CpuKernel {
 public:
  FastIntegerDepthwise(const NodeView& node, const WindowGeometry& g) : CpuKernel(node), g_(g) {}
  std::string description() const override { return "depthwise, vectors of channels"; }
  int64_t scratch_bytes() const override {
    return SaturatingMul(SaturatingMul(g_.taps(), g_.in_channels), int64_t{sizeof(int32_t)});
  }

  Status Run(const Args& args) const override {
    const int64_t channels = g_.in_channels;
    auto* weights = reinterpret_cast<int32_t*>(args.scratch);
    const bool zeros = args.has_input(3), one_zero = zeros && args.in(3).elements() == 1;
    for (int64_t i = 0; i < g_.taps() * channels; ++i) {
      const int32_t zero = zeros ? ByteAt(args, 3, one_zero ? 0 : i % channels) : 0;
      weights[i] = ByteAt(args, 1, i) - zero;
    }
    IntegerTaps pixel;
    pixel.is_signed = args.in(0).dtype == DType::kI8;
    pixel.zero = args.has_input(2) ? ByteAt(args, 2, 0) : 0;
    pixel.bias = args.has_input(4) ? args.In<int32_t>(4) : nullptr;
    const int64_t grain = GrainOf(SaturatingMul(g_.taps(), channels), 256);
    ParallelFor(args.threads, g_.batch * g_.out_pixels(), grain, [&](int64_t i, int64_t end) {
      std::vector<IntegerTap> taps;
      for (; i < end; ++i) {
        taps.clear();
        ForTaps(g_, i, [&](int64_t at, int64_t tap) {
          taps.push_back({args.inputs[0] + at * channels, weights + tap * channels});
        });
        IntegerTaps all = pixel;
        all.taps = taps.data();
        all.count = taps.size();
        HWY_DYNAMIC_DISPATCH(SumTaps)(all, channels, args.Out<int32_t>(0) + i * channels);
      }
    });
    return Status();
  }

 private:
  const WindowGeometry g_;
};

}  // namespace

std::unique_ptr<CpuKernel> MakeFastIntegerDepthwise(const NodeView& node, const WindowGeometry& g) {
  if (g.groups != g.in_channels || g.groups != g.out_channels || g.taps() == 0) return nullptr;
  return std::make_unique<FastIntegerDepthwise>(node, g);
}

}  // namespace oncilla::cpu
#endif
