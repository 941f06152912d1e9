// Fast GridSample for float and 16-bit floats: the taps of a place once, then vectors over
// channels. With less channels than a vector holds, floats of bilinear images are vectors over
// places, whose pixels are gathered.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/grid_sample.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>
#include <optional>

#include "backends/cpu/algorithms/grid_taps.h"
#include "backends/cpu/fast/blend.inl.h"
#include "backends/cpu/fast/fast.h"
#include "hwy/highway.h"

#ifndef ONCILLA_CPU_FAST_GRID_SAMPLE_ONCE
#define ONCILLA_CPU_FAST_GRID_SAMPLE_ONCE
namespace oncilla::cpu {

// An image that is sampled bilinearly, without reflection, and is small enough for 32-bit indices.
struct FlatImage {
  int32_t height = 0, width = 0, channels = 0;
  bool border = false;  // outside are the pixels at the border, else zeros
  bool align = false;
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The two pixels along an axis of `size` pixels for each of a vector of coordinates: their indices,
// within the image, the weight of the second one, and whether they are there.
template <class D, class V = hn::Vec<D>, class DI = hn::RebindToSigned<D>>
struct FlatTaps {
  V second;
  hn::Vec<DI> index[2];
  hn::Mask<D> inside[2];

  HWY_INLINE FlatTaps(D d, V g, int32_t size, const FlatImage& image) {
    const auto n = static_cast<float>(size);
    const V last = hn::Set(d, n - 1), none = hn::Zero(d), one = hn::Set(d, 1.0f);
    g = hn::IfThenElse(hn::IsNaN(g), hn::Set(d, -3.0f), g);
    g = hn::Min(hn::Max(g, hn::Set(d, -1e6f)), hn::Set(d, 1e6f));
    const V half = hn::Set(d, 0.5f), above = hn::Add(g, one);
    V x = image.align ? hn::Mul(hn::Mul(above, half), last)
                      : hn::Mul(hn::Sub(hn::Mul(above, hn::Set(d, n)), one), half);
    if (image.border) {
      const V low = image.align ? none : hn::Neg(half);
      const V high = hn::Set(d, image.align ? n - 1 : n - 0.5f);
      const auto beyond = hn::Or(hn::Lt(x, low), hn::Gt(x, high));
      x = hn::IfThenElse(beyond, hn::Min(hn::Max(x, none), last), x);
    }
    const V base = hn::Floor(x);
    second = hn::Sub(x, base);
    for (int k = 0; k < 2; ++k) {
      const V at = k == 0 ? base : hn::Add(base, one);
      const V within = hn::Min(hn::Max(at, none), last);
      index[k] = hn::ConvertTo(DI(), within);
      inside[k] = image.border ? hn::Eq(none, none) : hn::Eq(at, within);
    }
  }
};

// Bilinear samples of one image at the places [begin, end) of its grid; x[height, width, channels],
// grid[.., 2] -> y[.., channels].
void SampleFlat(const FlatImage& image, const float* x, const float* grid, int64_t begin,
                int64_t end, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f);
  HWY_ALIGN float values[hn::MaxLanes(d)];
  HWY_ALIGN float places[2 * hn::MaxLanes(d)];
  for (int64_t p = begin; p < end; p += lanes) {
    const int64_t count = std::min(lanes, end - p);
    const float* at = grid + p * 2;
    if (count < lanes) {  // the other lanes repeat the first place, and are not stored
      std::copy_n(at, 2 * count, places);
      for (int64_t i = count; i < lanes; ++i) std::copy_n(at, 2, places + 2 * i);
      at = places;
    }
    hn::Vec<decltype(d)> gx, gy;
    hn::LoadInterleaved2(d, at, gx, gy);
    const FlatTaps columns(d, gx, image.width, image), rows(d, gy, image.height, image);
    for (int32_t c = 0; c < image.channels; ++c) {
      auto sum = hn::Zero(d);
      for (int j = 0; j < 2; ++j) {
        const auto tall = j == 0 ? hn::Sub(one, rows.second) : rows.second;
        const auto line = hn::Mul(rows.index[j], hn::Set(di, image.width));
        for (int i = 0; i < 2; ++i) {
          const auto wide = i == 0 ? hn::Sub(one, columns.second) : columns.second;
          const auto index =
              hn::Add(hn::Mul(hn::Add(line, columns.index[i]), hn::Set(di, image.channels)),
                      hn::Set(di, c));
          const auto pixel = hn::GatherIndex(d, x, index);
          const auto inside = hn::And(rows.inside[j], columns.inside[i]);
          const auto weight = hn::IfThenElseZero(inside, hn::Mul(tall, wide));
          sum = hn::MulAdd(weight, hn::IfThenElseZero(inside, pixel), sum);
        }
      }
      hn::Store(sum, d, values);
      for (int64_t i = 0; i < count; ++i) y[(p + i) * image.channels + c] = values[i];
    }
  }
}

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

HWY_EXPORT(SampleFlat);
HWY_EXPORT(SampleFloats);
HWY_EXPORT(SampleHalves);
HWY_EXPORT(SampleBFloat16s);

class FastGridSample : public CpuKernel {
 public:
  FastGridSample(const NodeView& node, GridTaps taps, std::optional<FlatImage> flat)
      : CpuKernel(node), taps_(std::move(taps)), flat_(flat) {}
  std::string description() const override {
    return flat_ ? "vectors over places" : "vectors over channels";
  }

  Status Run(const Args& args) const override {
    const Shape out = args.out(0).shape;
    const int64_t channels = out.back(), places = out.Product(1, out.rank() - 1);
    if (flat_) {
      const int64_t pixels = args.in(0).shape.Product(1, 4);
      const auto sample = HWY_DYNAMIC_DISPATCH(SampleFlat);
      for (int64_t n = 0; n < out[0]; ++n) {
        ParallelFor(args.threads, places, 4096, [&](int64_t begin, int64_t end) {
          sample(*flat_, args.In<float>(0) + n * pixels, args.In<float>(1) + n * places * 2, begin,
                 end, args.Out<float>(0) + n * places * channels);
        });
      }
      return Status();
    }
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
  const std::optional<FlatImage> flat_;
};

// The image, if vectors over places are right for it.
std::optional<FlatImage> FlatOf(const GridSampleAttrs& attrs, const TensorDesc& x) {
  constexpr int64_t kMostChannels = 8, kMostElements = 1 << 24;  // sizes are whole floats
  const Shape& s = x.shape;
  if (x.dtype != DType::kF32 || s.rank() != 4 || s[3] > kMostChannels || attrs.mode != "linear" ||
      attrs.padding == "reflection" || s.Product(1, 4) > kMostElements || s.Product(1, 4) == 0) {
    return std::nullopt;
  }
  return FlatImage{static_cast<int32_t>(s[1]), static_cast<int32_t>(s[2]),
                   static_cast<int32_t>(s[3]), attrs.padding == "border", attrs.align_corners};
}

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
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastGridSample>(node, std::move(taps), FlatOf(attrs, x)));
}

}  // namespace oncilla::cpu
#endif
