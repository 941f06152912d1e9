// Sampling on the CPU: plain, exact code. Coordinates are in float, as devices compute them, so
// that the same pixels are chosen; sums are in double.
#include "engine/ops/nn/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/algorithms/grid_taps.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

template <class T, class G>
void Sample(const GridTaps& grid_taps, const Args& args) {
  const Shape out = args.out(0).shape;
  const int64_t channels = out.back(), places = out.Product(1, out.rank() - 1);
  const int spatial = grid_taps.spatial();
  ParallelFor(args.threads, out[0] * places, 64, [&](int64_t begin, int64_t end) {
    Tap taps[GridTaps::kMost];
    float place[3];
    for (int64_t p = begin; p < end; ++p) {
      for (int i = 0; i < spatial; ++i) {
        place[i] = static_cast<float>(args.In<G>(1)[p * spatial + i]);
      }
      const int count = grid_taps.Find(p / places, place, taps);
      T* y = args.Out<T>(0) + p * channels;
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int t = 0; t < count; ++t) {
          sum += taps[t].weight * static_cast<double>(args.In<T>(0)[taps[t].pixel * channels + c]);
        }
        y[c] = To<T>(sum);
      }
    }
  });
}

Status GridSample(const GridSampleAttrs& attrs, const Args& args) {
  const GridTaps taps(attrs, args.in(0).shape);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      DispatchDType(args.in(1).dtype, [&]<class G>(TypeTag<G>) {
        if constexpr (!std::is_integral_v<G>) Sample<T, G>(taps, args);
      });
    }
  });
  return Status();
}

// One axis of a region: where it begins, the length of a bin, and how many samples a bin has.
struct RoiAxis {
  float begin, bin;
  int samples;  // 0: too many
};

RoiAxis RoiAxisOf(const RoiAlignAttrs& attrs, float from, float to, int64_t bins) {
  const auto scale = static_cast<float>(attrs.scale);
  const float offset = attrs.half_pixel ? 0.5f : 0.0f;
  const float begin = from * scale - offset, end = to * scale - offset;
  const float size = attrs.half_pixel ? end - begin : std::fmax(end - begin, 1.0f);
  RoiAxis axis{begin, size / static_cast<float>(bins), static_cast<int>(attrs.samples)};
  if (axis.samples > 0) return axis;
  const float wanted = std::ceil(axis.bin);
  if (!(wanted <= kMostRoiSamples)) {
    axis.samples = -1;
  } else {
    axis.samples = static_cast<int>(std::fmax(wanted, 0.0f));  // a region may be at infinity
  }
  return axis;
}

// The two neighbours of a coordinate; none when it lies more than a pixel outside.
int RoiTaps(float x, int64_t size, Tap* taps) {
  if (!(x >= -1 && x <= static_cast<float>(size))) return 0;
  x = std::fmax(x, 0.0f);
  int64_t low = static_cast<int64_t>(x), high = low + 1;
  if (low >= size - 1) {
    low = high = size - 1;
    x = static_cast<float>(low);
  }
  const double t = static_cast<double>(x - static_cast<float>(low));
  taps[0] = {low, 1 - t};
  taps[1] = {high, t};
  return 2;
}

template <class T, class R>
void AlignBin(const RoiAlignAttrs& attrs, const Args& args, const RoiAxis& rows,
              const RoiAxis& columns, int64_t batch, int64_t bin_y, int64_t bin_x, T* y) {
  const Shape in = args.in(0).shape;
  const int64_t channels = in[3];
  const bool max = attrs.mode == "max";
  std::vector<double> sum(static_cast<size_t>(channels), 0.0);
  bool first = true;
  const auto place = [](const RoiAxis& axis, int64_t bin, int i) {
    return axis.begin + static_cast<float>(bin) * axis.bin +
           (static_cast<float>(i) + 0.5f) * axis.bin / static_cast<float>(axis.samples);
  };
  for (int i = 0; i < rows.samples; ++i) {
    Tap vertical[2], horizontal[2];
    const int down = RoiTaps(place(rows, bin_y, i), in[1], vertical);
    for (int j = 0; j < columns.samples; ++j) {
      const int across = RoiTaps(place(columns, bin_x, j), in[2], horizontal);
      if (max && (down == 0 || across == 0)) {
        for (double& v : sum) v = first ? 0 : std::fmax(v, 0.0);
        first = false;
      }
      for (int a = 0; a < down && across > 0; ++a) {
        for (int b = 0; b < across; ++b) {
          const double weight = vertical[a].weight * horizontal[b].weight;
          const T* x =
              args.In<T>(0) +
              ((batch * in[1] + vertical[a].pixel) * in[2] + horizontal[b].pixel) * channels;
          for (int64_t c = 0; c < channels; ++c) {
            const double v = weight * static_cast<double>(x[c]);
            sum[c] = !max ? sum[c] + v : first ? v : std::fmax(sum[c], v);
          }
          first = false;
        }
      }
    }
  }
  const double count = std::max(rows.samples * columns.samples, 1);
  for (int64_t c = 0; c < channels; ++c) y[c] = To<T>(max ? sum[c] : sum[c] / count);
}

template <class T, class R>
Status Align(const RoiAlignAttrs& attrs, const Args& args) {
  const Shape in = args.in(0).shape, out = args.out(0).shape;
  const int64_t bins = attrs.height * attrs.width;
  std::vector<int64_t> batch;
  DispatchDType(args.in(2).dtype, [&]<class I>(TypeTag<I>) {
    if constexpr (std::is_integral_v<I>) {
      for (int64_t r = 0; r < out[0]; ++r) batch.push_back(static_cast<int64_t>(args.In<I>(2)[r]));
    }
  });
  std::vector<RoiAxis> axes;  // rows, columns of each region
  for (int64_t r = 0; r < out[0]; ++r) {
    const int64_t at = batch[static_cast<size_t>(r)];
    if (at < 0 || at >= in[0]) return IndexError(at, 0, in[0]);
    const R* roi = args.In<R>(1) + r * 4;
    const auto edge = [&](int i) { return static_cast<float>(roi[i]); };
    axes.push_back(RoiAxisOf(attrs, edge(1), edge(3), attrs.height));
    axes.push_back(RoiAxisOf(attrs, edge(0), edge(2), attrs.width));
    if (axes.back().samples < 0 || axes[axes.size() - 2].samples < 0) {
      return InvalidArgument("region ", r, " is out of range: more than ", kMostRoiSamples,
                             " pixels for a bin");
    }
  }
  ParallelFor(args.threads, out[0] * bins, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto r = static_cast<size_t>(i / bins);
      AlignBin<T, R>(attrs, args, axes[2 * r], axes[2 * r + 1], batch[r], i % bins / attrs.width,
                     i % attrs.width, args.Out<T>(0) + i * in[3]);
    }
  });
  return Status();
}

Status RoiAlign(const RoiAlignAttrs& attrs, const Args& args) {
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      DispatchDType(args.in(1).dtype, [&]<class R>(TypeTag<R>) {
        if constexpr (!std::is_integral_v<R>) status = Align<T, R>(attrs, args);
      });
    }
  });
  return status;
}

// One axis of a region in whole pixels: where it begins, and the length of a bin.
struct PoolAxis {
  int64_t begin, size;
  float bin;

  struct Span {
    int64_t begin, end;
  };
  Span Pixels(int64_t i) const {
    const auto low = static_cast<int64_t>(std::floor(static_cast<float>(i) * bin));
    const auto high = static_cast<int64_t>(std::ceil(static_cast<float>(i + 1) * bin));
    return {std::clamp(begin + low, int64_t{0}, size), std::clamp(begin + high, int64_t{0}, size)};
  }
};

Result<PoolAxis> PoolAxisOf(float scale, float from, float to, int64_t bins, int64_t size) {
  const float begin = std::round(from * scale), end = std::round(to * scale);
  constexpr float kFarthest = kFarthestRoi;
  if (!(std::fabs(begin) <= kFarthest && std::fabs(end) <= kFarthest)) {
    return InvalidArgument("a region from ", from, " to ", to, " is out of range");
  }
  const auto first = static_cast<int64_t>(begin);
  const int64_t pixels = std::max<int64_t>(static_cast<int64_t>(end) - first + 1, 1);
  return PoolAxis{first, size, static_cast<float>(pixels) / static_cast<float>(bins)};
}

struct PoolRegion {
  int64_t image;
  PoolAxis rows, columns;
};

template <class R>
Result<PoolRegion> PoolRegionOf(const MaxRoiPoolAttrs& attrs, const R* roi, const Shape& in) {
  const auto at = [&](int i) { return static_cast<float>(roi[i]); };
  const auto scale = static_cast<float>(attrs.scale);
  if (!(at(0) > -1 && at(0) < static_cast<float>(in[0]))) {
    return InvalidArgument("image ", at(0), " is out of range [0, ", in[0], ")");
  }
  ONCILLA_ASSIGN(const PoolAxis columns, PoolAxisOf(scale, at(1), at(3), attrs.width, in[2]));
  ONCILLA_ASSIGN(const PoolAxis rows, PoolAxisOf(scale, at(2), at(4), attrs.height, in[1]));
  return PoolRegion{static_cast<int64_t>(at(0)), rows, columns};
}

// The largest pixel of each channel, or its first NaN.
template <class T>
void PoolBin(const T* image, int64_t row, int64_t channels, PoolAxis::Span rows,
             PoolAxis::Span columns, T* y) {
  using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  const bool none = rows.begin >= rows.end || columns.begin >= columns.end;
  std::fill_n(y, channels, static_cast<T>(none ? 0.0f : -INFINITY));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t q = columns.begin; q < columns.end; ++q) {
      const T* x = image + (r * row + q) * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const Wide next = x[c], best = y[c];
        if (next > best || (std::isnan(next) && !std::isnan(best))) y[c] = x[c];
      }
    }
  }
}

template <class T, class R>
Status PoolRegions(const MaxRoiPoolAttrs& attrs, const Args& args) {
  const Shape in = args.in(0).shape;
  const int64_t bins = attrs.height * attrs.width;
  std::vector<PoolRegion> regions;
  for (int64_t r = 0; r < args.out(0).shape[0]; ++r) {
    auto region = PoolRegionOf(attrs, args.In<R>(1) + r * 5, in);
    if (!region.ok()) return In(region.status(), StrCat("region ", r));
    regions.push_back(*region);
  }
  ParallelFor(args.threads, std::ssize(regions) * bins, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PoolRegion& region = regions[static_cast<size_t>(i / bins)];
      PoolBin<T>(args.In<T>(0) + region.image * in[1] * in[2] * in[3], in[2], in[3],
                 region.rows.Pixels(i % bins / attrs.width), region.columns.Pixels(i % attrs.width),
                 args.Out<T>(0) + i * in[3]);
    }
  });
  return Status();
}

Status MaxRoiPool(const MaxRoiPoolAttrs& attrs, const Args& args) {
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      DispatchDType(args.in(1).dtype, [&]<class R>(TypeTag<R>) {
        if constexpr (!std::is_integral_v<R>) status = PoolRegions<T, R>(attrs, args);
      });
    }
  });
  return status;
}

const KernelRow kRows[] = {
    Row<GridSample>("GridSample", kFloats, &MakeFastGridSample),
    Row<MaxRoiPool>("MaxRoiPool", kFloats),
    Row<RoiAlign>("RoiAlign", kFloats),
};

}  // namespace

std::span<const KernelRow> SamplingKernels() { return kRows; }

}  // namespace oncilla::cpu
