// Resize on the CPU: plain, exact code.
#include <cmath>
#include <limits>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/nn/resize.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Integers are rounded to nearest, ties to even, and clamped to their range.
template <class T>
T Narrow(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    value = std::nearbyint(value);
    constexpr auto least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
    if (value >= static_cast<double>(most)) return most;
    if (value <= static_cast<double>(least)) return least;
  }
  return static_cast<T>(value);
}

struct WeightedPixel {
  int64_t at;
  double weight;
};

Status Resize(const ResizeAttrs& given, const Args& args) {
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, args.node.inputs));
  const Shape in = args.in(0).shape, out = args.out(0).shape;
  const int spatial = in.rank() - 2;
  std::vector<ResizeTaps> tables;
  for (int i = 0; i < spatial; ++i) {
    ONCILLA_ASSIGN(ResizeTaps table, TapsOf(attrs, i, in[1 + i], out[1 + i]));
    tables.push_back(std::move(table));
  }
  std::vector<ResizeAxis> places;
  for (int i = 0; attrs.coordinates == "crop_and_resize" && i < spatial; ++i) {
    ONCILLA_ASSIGN(const ResizeAxis axis, AxisOf(attrs, i, in[1 + i], out[1 + i]));
    places.push_back(axis);
  }
  const bool copies = attrs.mode == "nearest";
  const int64_t channels = in.back(), pixels = out.Product(1, out.rank() - 1);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.In<T>(0);
    ParallelFor(args.threads, out[0] * pixels, 64, [&](int64_t begin, int64_t end) {
      std::vector<WeightedPixel> seen, next;
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        // Collects the input pixels of this output and their weights, one axis after the other.
        seen.assign(1, {pixel / pixels, 1.0});
        bool inside = true;
        for (int i = 0; i < spatial; ++i) {
          const ResizeTaps& table = tables[static_cast<size_t>(i)];
          const int64_t inner = out.Product(2 + i, out.rank() - 1);
          const int64_t o = pixel % pixels / inner % out[1 + i];
          if (!places.empty()) inside = inside && places[static_cast<size_t>(i)].Inside(o);
          next.clear();
          for (const WeightedPixel& p : seen) {
            for (int64_t t = o * table.taps; t < (o + 1) * table.taps; ++t) {
              const auto k = static_cast<size_t>(t);
              next.push_back({p.at * in[1 + i] + table.index[k], p.weight * table.weight[k]});
            }
          }
          seen.swap(next);
        }
        T* y = args.Out<T>(0) + pixel * channels;
        for (int64_t c = 0; c < channels; ++c) {
          if (!inside) {
            y[c] = Narrow<T>(attrs.outside);
            continue;
          }
          if (copies) {
            y[c] = x[seen[0].at * channels + c];
            continue;
          }
          double sum = 0;
          for (const WeightedPixel& p : seen) {
            sum += p.weight * static_cast<double>(x[p.at * channels + c]);
          }
          y[c] = Narrow<T>(sum);
        }
      }
    });
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Resize>("Resize", kFixedSize, &MakeFastResize),
};

}  // namespace

std::span<const KernelRow> ResizeKernels() { return kRows; }

}  // namespace oncilla::cpu
