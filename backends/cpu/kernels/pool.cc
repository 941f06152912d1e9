// Pools on the CPU: plain, exact code.
#include "engine/ops/nn/pool.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/philox.h"
#include "backends/cpu/move.h"
#include "backends/cpu/windows.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Calls each(pixel, see) for every output pixel. see(f) calls f(input pixel) for every input pixel
// of its window, in order.
template <class F>
void ForWindows(const Threads& threads, const WindowGeometry& g, F&& each) {
  const int64_t grain = GrainOf(SaturatingMul(g.taps(), g.in_channels), 64);
  ParallelFor(threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
    Lookout look(threads);
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      each(pixel, [&](auto&& f) {
        if (look.Ended(g.taps())) return;
        ForTaps(g, pixel, [&](int64_t at, int64_t) { f(at); });
      });
    }
  });
}

template <class T>
constexpr T Least() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return T(-INFINITY);
}

// Whether `a` replaces `b` as the maximum: it is larger, or the first NaN.
template <class T>
bool Beats(T a, T b) {
  if constexpr (std::is_integral_v<T>) return a > b;
  return a > b || (std::isnan(a) && !std::isnan(b));
}

Status MaxPool(const MaxPoolAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(attrs, args.node));
  const int64_t channels = g.in_channels, pixels = g.in_pixels();
  const bool channels_first = attrs.index_order == "nchw";
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    // 16-bit floats are compared as float.
    using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    const T* x = args.In<T>(0);
    ForWindows(args.threads, g, [&](int64_t pixel, auto&& see) {
      T* y = args.Out<T>(0) + pixel * channels;
      int64_t* index = attrs.with_indices ? args.Out<int64_t>(1) + pixel * channels : nullptr;
      for (int64_t c = 0; c < channels; ++c) {
        T best = Least<T>();
        int64_t where = -1;
        see([&](int64_t at) {
          const T value = x[at * channels + c];
          if (where >= 0 && !Beats(static_cast<Wide>(value), static_cast<Wide>(best))) return;
          best = value;
          where = at;
        });
        y[c] = best;
        if (index == nullptr) continue;
        index[c] = where < 0        ? -1
                   : channels_first ? (where / pixels * channels + c) * pixels + where % pixels
                                    : where * channels + c;
      }
    });
  });
  return Status();
}

Status AveragePool(const AveragePoolAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(attrs, args.node));
  // The taps of window o, counting those in the padding but none beyond it.
  auto padded = [](const WindowAxis& axis, int64_t o) {
    const int64_t room = axis.in + axis.pad_end - axis.start(o);
    return std::min(axis.kernel, (room + axis.dilation - 1) / axis.dilation);
  };
  const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const T* x = args.In<T>(0);
      ForWindows(args.threads, g, [&](int64_t pixel, auto&& see) {
        int64_t seen = 0;
        see([&](int64_t) { ++seen; });
        if (attrs.count_pads) {
          seen = padded(depth, pixel / width.out / height.out % depth.out) *
                 padded(height, pixel / width.out % height.out) * padded(width, pixel % width.out);
        }
        for (int64_t c = 0; c < g.in_channels; ++c) {
          double sum = 0;
          see([&](int64_t at) { sum += static_cast<double>(x[at * g.in_channels + c]); });
          args.Out<T>(0)[pixel * g.in_channels + c] =
              static_cast<T>(seen == 0 ? 0 : sum / static_cast<double>(seen));
        }
      });
    }
  });
  return Status();
}

Status LpPool(const LpPoolAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(attrs, args.node));
  const auto p = static_cast<double>(attrs.p);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const T* x = args.In<T>(0);
      ForWindows(args.threads, g, [&](int64_t pixel, auto&& see) {
        for (int64_t c = 0; c < g.in_channels; ++c) {
          double sum = 0;
          see([&](int64_t at) {
            sum += std::pow(std::fabs(static_cast<double>(x[at * g.in_channels + c])), p);
          });
          args.Out<T>(0)[pixel * g.in_channels + c] = static_cast<T>(std::pow(sum, 1 / p));
        }
      });
    }
  });
  return Status();
}

Status ExtractPatches(const ExtractPatchesAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(attrs, args.node));
  const int64_t channels = g.in_channels, row = g.taps() * channels;
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    const int64_t grain = GrainOf(row, 64);
    ParallelFor(args.threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        T* y = args.Out<T>(0) + pixel * row;
        std::fill_n(y, row, T());
        ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
          std::copy_n(args.In<T>(0) + at * channels, channels, y + tap * channels);
        });
      }
    });
  });
  return Status();
}

// Integers wrap in their own type.
template <class T>
T WrappingSum(T a, T b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(a + b);
  } else {
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  }
}

Status Dilation(const DilationAttrs& attrs, const Args& args) {
  PoolWindow window = attrs;
  const Shape filter = args.in(1).shape;
  window.kernel.assign(filter.begin(), filter.end() - 1);
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(window, args.node));
  const int64_t channels = g.in_channels;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    const int64_t grain = GrainOf(g.taps() * channels, 64);
    ParallelFor(args.threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        T* y = args.Out<T>(0) + pixel * channels;
        std::fill_n(y, channels, Least<T>());
        ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
          for (int64_t c = 0; c < channels; ++c) {
            const T sum =
                WrappingSum(args.In<T>(0)[at * channels + c], args.In<T>(1)[tap * channels + c]);
            if (Beats(static_cast<Wide>(sum), static_cast<Wide>(y[c]))) y[c] = sum;
          }
        });
      }
    });
  });
  return Status();
}

// Each thread has channels of its own, so that the sums have one order.
Status DilationGrad(const DilationGradAttrs& attrs, const Args& args) {
  PoolWindow window = attrs;
  const Shape filter = args.in(1).shape;
  window.kernel.assign(filter.begin(), filter.end() - 1);
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(window, args.node));
  const int64_t channels = g.in_channels, pixels = g.batch * g.out_pixels();
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    const T *x = args.In<T>(0), *taps = args.In<T>(1), *dy = args.In<T>(2);
    T* out = args.Out<T>(0);
    std::fill_n(out, args.out(0).elements(), T());
    const int64_t grain = GrainOf(SaturatingMul(g.taps(), pixels), 1);
    ParallelFor(args.threads, channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * pixels; i < end * pixels; ++i) {
        const int64_t c = i / pixels, pixel = i % pixels;
        int64_t place = -1;
        T most = Least<T>();
        ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
          const T sum = WrappingSum(x[at * channels + c], taps[tap * channels + c]);
          if (place >= 0 && !Beats(static_cast<Wide>(sum), static_cast<Wide>(most))) return;
          place = attrs.of_filter ? tap : at;
          most = sum;
        });
        if (place < 0) continue;
        T& to = out[place * channels + c];
        to = WrappingSum(to, dy[pixel * channels + c]);
      }
    });
  });
  return Status();
}

// The sizes of n windows over `size` elements, after Graham, "Fractional max-pooling". A step of
// the generator gives four numbers, and each axis begins with a new step.
std::vector<int64_t> WindowSizes(const FractionalPoolAttrs& attrs, int64_t size, int64_t n,
                                 Philox& generator) {
  const int64_t least = size / n;
  std::vector<int64_t> out(static_cast<size_t>(n), least);
  PhiloxSequence random(generator);
  if (attrs.pseudo_random) {
    generator.Skip(1);
    // Window i ends at ceil(alpha * (i + u)). The bound on u keeps the first and the last window
    // from being too long or too short.
    const double alpha = static_cast<double>(size) / static_cast<double>(n);
    const double first = static_cast<double>(least + 2) / alpha - 1;
    const double last = static_cast<double>(size + 1 - least) / alpha - static_cast<double>(n - 1);
    const uint64_t high = random() & 0xfffff, low = random();
    const double u = (std::bit_cast<double>(uint64_t{1023} << 52 | high << 32 | low) - 1) *
                     std::min(first, last);
    int64_t before = 1;
    for (int64_t i = 1; i <= n; ++i) {
      const int64_t end =
          i == n ? size + 1 : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u)));
      out[static_cast<size_t>(i - 1)] = end - before;
      before = end;
    }
    return out;
  }
  generator.Skip(static_cast<uint64_t>((n + 3) / 4));
  for (int64_t i = 0; i < size % n; ++i) ++out[static_cast<size_t>(i)];
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    std::swap(out[i], out[i + random() % (out.size() - i)]);
  }
  return out;
}

Status FractionalPool(const FractionalPoolAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, y = args.out(0).shape;
  Philox generator(static_cast<uint64_t>(attrs.seed), static_cast<uint64_t>(attrs.seed2));
  std::vector<int64_t> begins[2];
  for (int i = 0; i < 2; ++i) {
    int64_t at = 0;
    begins[i].push_back(0);
    for (int64_t window : WindowSizes(attrs, x[1 + i], y[1 + i], generator)) {
      begins[i].push_back(at += window);
    }
    std::copy(begins[i].begin(), begins[i].end(), args.Out<int64_t>(static_cast<size_t>(i) + 1));
  }
  const int64_t channels = x[3], extra = attrs.overlapping ? 1 : 0;
  const bool average = attrs.mode == "average";
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
      ParallelFor(args.threads, x[0] * y[1], 8, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const auto oh = static_cast<size_t>(r % y[1]);
          const int64_t last_h = std::min(begins[0][oh + 1] + extra, x[1]);
          for (int64_t ow = 0; ow < y[2]; ++ow) {
            const int64_t first_w = begins[1][static_cast<size_t>(ow)];
            const int64_t last_w = std::min(begins[1][static_cast<size_t>(ow) + 1] + extra, x[2]);
            for (int64_t c = 0; c < channels; ++c) {
              Wide sum = 0, count = 0;
              for (int64_t h = begins[0][oh]; h < last_h; ++h) {
                for (int64_t w = first_w; w < last_w; ++w, ++count) {
                  const auto v = static_cast<Wide>(
                      args.In<T>(0)[((r / y[1] * x[1] + h) * x[2] + w) * channels + c]);
                  sum = average ? sum + v : count == 0 ? v : std::max(sum, v);
                }
              }
              const Wide result = average && count > 0 ? sum / count : sum;
              args.Out<T>(0)[(r * y[2] + ow) * channels + c] = static_cast<T>(result);
            }
          }
        }
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<FractionalPool>("FractionalPool", kNumbers),
    Row<MaxPool>("MaxPool", kNumbers, &MakeFastMaxPool),
    Row<AveragePool>("AveragePool", kFloats, &MakeFastAveragePool),
    Row<LpPool>("LpPool", kFloats, &MakeFastLpPool),
    Row<ExtractPatches>("ExtractPatches", kFixedSize),
    Row<Dilation>("Dilation", kNumbers),
    Row<DilationGrad>("DilationGrad", kNumbers),
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace oncilla::cpu
