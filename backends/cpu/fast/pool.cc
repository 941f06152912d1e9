// Fast MaxPool, AveragePool and LpPool for float and for 16-bit floats, and MaxPool for bytes:
// vectors over channels, tasks of output rows.
//
// The sums of a pixel, for a few vectors of channels, stay in registers while its window is read. A
// maximum is the first NaN of its window, if any; results with indices are left to the plain
// kernel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/pool.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/nn/pool.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/pool_rows.h"
#include "backends/cpu/vector.inl.h"
#include "backends/cpu/windows.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// Reduces the window of one pixel for kVectors vectors of channels, of which the last has `count`
// channels.
template <PoolKind kKind, int kVectors, class T>
HWY_INLINE void PoolPixel(const PoolRows& p, const T* sample, int64_t od, int64_t oh, int64_t ow,
                          int64_t c, int64_t count, float seen, T* y) {
  constexpr Floats d;
  const WindowAxis &depth = p.geometry.axis[0], &height = p.geometry.axis[1];
  const WindowAxis& width = p.geometry.axis[2];
  const int64_t channels = p.geometry.in_channels;
  const auto td = depth.Seen(od), th = height.Seen(oh), tw = width.Seen(ow);
  Vector sum[kVectors];
  const Vector start =
      hn::Set(d, kKind == PoolKind::kMaximum ? -std::numeric_limits<float>::infinity() : 0.0f);
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = start;
  for (int64_t kd = td.begin; kd < td.end; ++kd) {
    for (int64_t kh = th.begin; kh < th.end; ++kh) {
      const int64_t line = (depth.start(od) + kd * depth.dilation) * height.in + height.start(oh) +
                           kh * height.dilation;
      const int64_t first = line * width.in + width.start(ow);
      for (int64_t kw = tw.begin; kw < tw.end; ++kw) {
        const T* x = sample + (first + kw * width.dilation) * channels + c;
        ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
          const Vector in = kVectors == 1 ? LoadSome(x, count) : LoadAll(x + v * kLanes);
          if constexpr (kKind == PoolKind::kMaximum) {
            const auto wins = hn::Or(hn::Gt(in, sum[v]), hn::IsNaN(in));
            sum[v] = hn::IfThenElse(wins, in, sum[v]);
          } else if constexpr (kKind == PoolKind::kRootSquares) {
            sum[v] = hn::MulAdd(in, in, sum[v]);
          } else {
            sum[v] = hn::Add(sum[v], kKind == PoolKind::kSumAbs ? hn::Abs(in) : in);
          }
        }
      }
    }
  }
  ONCILLA_UNROLL for (int v = 0; v < kVectors; ++v) {
    Vector out = sum[v];
    if constexpr (kKind == PoolKind::kAverage) out = hn::Div(out, hn::Set(d, seen));
    if constexpr (kKind == PoolKind::kRootSquares) out = hn::Sqrt(out);
    if (kVectors == 1) {
      StoreSome(out, y + c, count);
    } else {
      StoreAll(out, y + c + v * kLanes);
    }
  }
}

template <PoolKind kKind, class T>
void PoolRange(const PoolRows& p, int64_t begin, int64_t end) {
  const WindowAxis &depth = p.geometry.axis[0], &height = p.geometry.axis[1];
  const int64_t width = p.geometry.axis[2].out, channels = p.geometry.in_channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t oh = row % height.out, od = row / height.out % depth.out;
    const int64_t sample = row / height.out / depth.out;
    const T* x = static_cast<const T*>(p.x) + sample * p.geometry.in_pixels() * channels;
    constexpr bool kCounts = kKind == PoolKind::kAverage;
    const int64_t counted = !kCounts ? 0 : p.Counted(0, od) * p.Counted(1, oh);
    for (int64_t ow = 0; ow < width; ++ow) {
      // A window without any input has the sum 0, and so the average 0.
      const int64_t number = !kCounts ? 1 : std::max<int64_t>(1, counted * p.Counted(2, ow));
      const auto seen = static_cast<float>(number);
      T* y = static_cast<T*>(p.y) + (row * width + ow) * channels;
      int64_t c = 0;
      for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
        PoolPixel<kKind, 4>(p, x, od, oh, ow, c, 0, seen, y);
      }
      for (; c < channels; c += kLanes) {
        PoolPixel<kKind, 1>(p, x, od, oh, ow, c, channels - c, seen, y);
      }
    }
  }
}

// The pixels that a window sees, some at a time.
template <class T>
struct Taps {
  static constexpr int kMost = 16;
  const T* at[kMost];
  int count = 0;
};

// y[i] = the largest of y[i] and of element i of each tap.
template <class T>
HWY_INLINE void KeepLargest(const Taps<T>& taps, int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto most = hn::LoadU(d, y + i);
    for (int t = 0; t < taps.count; ++t) most = hn::Max(most, hn::LoadU(d, taps.at[t] + i));
    hn::StoreU(most, d, y + i);
  }
  for (; i < n; ++i) {
    for (int t = 0; t < taps.count; ++t) y[i] = std::max(taps.at[t][i], y[i]);
  }
}

template <class T>
void MaxOfBytes(const PoolRows& p, int64_t begin, int64_t end) {
  const WindowGeometry& g = p.geometry;
  const int64_t channels = g.in_channels;
  WindowPlace place(g, begin * g.axis[2].out);
  T* y = static_cast<T*>(p.y) + begin * g.axis[2].out * channels;
  for (int64_t pixel = begin * g.axis[2].out; pixel < end * g.axis[2].out; ++pixel) {
    std::fill_n(y, channels, std::numeric_limits<T>::lowest());
    Taps<T> taps;
    const auto take = [&]() HWY_ATTR {
      KeepLargest(taps, channels, y);
      taps.count = 0;
    };
    ForTapRuns(place, place.SeesWhole(), [&](int64_t at, int64_t, int64_t count) HWY_ATTR {
      const T* x = static_cast<const T*>(p.x) + at * channels;
      for (; count > 0; --count, x += channels) {
        if (taps.count == Taps<T>::kMost) take();
        taps.at[taps.count++] = x;
      }
    });
    take();
    y += channels;
    place.Next();
  }
}

template <class T>
void RowsOf(const PoolRows& p, int64_t begin, int64_t end) {
  switch (p.kind) {
    case PoolKind::kMaximum:
      return PoolRange<PoolKind::kMaximum, T>(p, begin, end);
    case PoolKind::kAverage:
      return PoolRange<PoolKind::kAverage, T>(p, begin, end);
    case PoolKind::kSumAbs:
      return PoolRange<PoolKind::kSumAbs, T>(p, begin, end);
    case PoolKind::kRootSquares:
      return PoolRange<PoolKind::kRootSquares, T>(p, begin, end);
  }
}
void RunPoolRows(const PoolRows& p, int64_t begin, int64_t end) {
  if (p.dtype == DType::kU8) return MaxOfBytes<uint8_t>(p, begin, end);
  if (p.dtype == DType::kI8) return MaxOfBytes<int8_t>(p, begin, end);
  p.dtype == DType::kF16    ? RowsOf<Half>(p, begin, end)
  : p.dtype == DType::kBF16 ? RowsOf<BFloat16>(p, begin, end)
                            : RowsOf<float>(p, begin, end);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(RunPoolRows);

class FastPool : public CpuKernel {
 public:
  FastPool(const NodeView& node, PoolRows rows) : CpuKernel(node), rows_(rows) {}
  std::string description() const override { return "vectors over channels"; }

  Status Run(const Args& args) const override {
    PoolRows rows = rows_;
    rows.x = args.inputs[0];
    rows.y = args.outputs[0];
    const WindowGeometry& g = rows.geometry;
    const int64_t count = g.batch * g.axis[0].out * g.axis[1].out;
    const int64_t work = SaturatingMul(g.axis[2].out * g.in_channels, g.taps());
    const int64_t grain = std::clamp<int64_t>(150'000 / work, 1, count);
    ParallelFor(args.threads, count, grain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(RunPoolRows)(rows, begin, end);
    });
    return Status();
  }

 private:
  const PoolRows rows_;
};

Result<std::unique_ptr<CpuKernel>> MakePool(const NodeView& node, const PoolWindow& window,
                                            PoolKind kind, bool count_pads) {
  const DType dtype = node.inputs[0].dtype;
  const bool bytes = kind == PoolKind::kMaximum && (dtype == DType::kU8 || dtype == DType::kI8);
  if ((!IsCarried(dtype) && !bytes) || node.outputs[0].desc().elements() == 0) return nullptr;
  PoolRows rows;
  ONCILLA_ASSIGN(rows.geometry, PoolGeometry(window, node));
  rows.dtype = dtype;
  rows.kind = kind;
  rows.count_pads = count_pads;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastPool>(node, rows));
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastMaxPool(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MaxPoolAttrs>(*node.attrs));
  if (attrs.with_indices) return nullptr;
  return MakePool(node, attrs, PoolKind::kMaximum, false);
}

Result<std::unique_ptr<CpuKernel>> MakeFastAveragePool(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<AveragePoolAttrs>(*node.attrs));
  return MakePool(node, attrs, PoolKind::kAverage, attrs.count_pads);
}

Result<std::unique_ptr<CpuKernel>> MakeFastLpPool(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<LpPoolAttrs>(*node.attrs));
  if (attrs.p != 1 && attrs.p != 2) return nullptr;
  return MakePool(node, attrs, attrs.p == 1 ? PoolKind::kSumAbs : PoolKind::kRootSquares, false);
}

}  // namespace oncilla::cpu
#endif
