// Fast GridSample for float and 16-bit floats: the taps of a place once, then vectors over
// channels.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/grid_sample.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>

#include "backends/cpu/algorithms/grid_taps.h"
#include "backends/cpu/fast/blend.inl.h"
#include "backends/cpu/fast/fast.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The places [begin, end) of all samples, `places` in each; x[pixels, channels], grid[places,
// spatial] -> y[places, channels].
template <class T>
void SamplePlaces(const GridTaps& grid_taps, int64_t places, int64_t channels, const T* x,
                  const float* grid, int64_t begin, int64_t end, T* y) {
  Tap taps[GridTaps::kMost];
  const T* from[GridTaps::kMost];
  float weight[GridTaps::kMost];
  for (int64_t p = begin; p < end; ++p) {
    const int count = grid_taps.Find(p / places, grid + p * grid_taps.spatial(), taps);
    for (int t = 0; t < count; ++t) {
      from[t] = x + taps[t].pixel * channels;
      weight[t] = static_cast<float>(taps[t].weight);
    }
    T* to = y + p * channels;
    if (count == 0) {
      std::fill_n(to, channels, T(0.0f));
    } else if (channels < 4) {  // too few for a vector
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int t = 0; t < count; ++t) sum += weight[t] * static_cast<float>(from[t][c]);
        to[c] = T(sum);
      }
    } else {
      Blend(from, weight, count, channels, to);
    }
  }
}

void SampleFloats(const GridTaps& taps, int64_t places, int64_t channels, const void* x,
                  const float* grid, int64_t begin, int64_t end, void* y) {
  SamplePlaces(taps, places, channels, static_cast<const float*>(x), grid, begin, end,
               static_cast<float*>(y));
}
void SampleHalves(const GridTaps& taps, int64_t places, int64_t channels, const void* x,
                  const float* grid, int64_t begin, int64_t end, void* y) {
  SamplePlaces(taps, places, channels, static_cast<const Half*>(x), grid, begin, end,
               static_cast<Half*>(y));
}
void SampleBFloat16s(const GridTaps& taps, int64_t places, int64_t channels, const void* x,
                     const float* grid, int64_t begin, int64_t end, void* y) {
  SamplePlaces(taps, places, channels, static_cast<const BFloat16*>(x), grid, begin, end,
               static_cast<BFloat16*>(y));
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(SampleFloats);
HWY_EXPORT(SampleHalves);
HWY_EXPORT(SampleBFloat16s);

class FastGridSample : public CpuKernel {
 public:
  FastGridSample(const NodeView& node, GridTaps taps) : CpuKernel(node), taps_(std::move(taps)) {}
  std::string description() const override { return "vectors over channels"; }

  Status Run(const Args& args) const override {
    const Shape out = args.out(0).shape;
    const int64_t channels = out.back(), places = out.Product(1, out.rank() - 1);
    // A place costs about as much as forty elements of its taps.
    const int64_t grain =
        std::max<int64_t>(1, 32768 / SaturatingAdd(40, SaturatingMul(channels, taps_.most())));
    ParallelFor(args.threads, out[0] * places, grain, [&](int64_t begin, int64_t end) {
      const auto run = [&](auto sample) {
        sample(taps_, places, channels, args.inputs[0], args.In<float>(1), begin, end,
               args.outputs[0]);
      };
      switch (args.in(0).dtype) {
        case DType::kF16:
          return run(HWY_DYNAMIC_DISPATCH(SampleHalves));
        case DType::kBF16:
          return run(HWY_DYNAMIC_DISPATCH(SampleBFloat16s));
        default:
          return run(HWY_DYNAMIC_DISPATCH(SampleFloats));
      }
    });
    return Status();
  }

 private:
  const GridTaps taps_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastGridSample(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<GridSampleAttrs>(*node.attrs));
  const TensorDesc x = node.inputs[0].desc();
  if (!IsCarried(x.dtype) || node.inputs[1].dtype != DType::kF32 ||
      node.outputs[0].desc().elements() == 0) {
    return nullptr;
  }
  GridTaps taps(attrs, x.shape);
  if (taps.most() > GridTaps::kMost) return nullptr;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastGridSample>(node, std::move(taps)));
}

}  // namespace oncilla::cpu
#endif
