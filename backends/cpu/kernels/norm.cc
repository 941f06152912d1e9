// Normalisation kernels of the CPU: plain, exact code, all sums in double.
#include "backends/cpu/fast/norm.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/nn/norm.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// The sizes of a shape before, along and after an axis.
struct AroundAxis {
  int64_t outer, size, inner;
};
Result<AroundAxis> Around(const Shape& shape, int64_t axis) {
  ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, shape.rank()));
  return AroundAxis{shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank())};
}

// The rows of a chunk of about 4096 elements.
int64_t RowGrain(int64_t row) { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, row)); }

// Calls fn(x, y, stride, size) for every line along the axis; T is the element type.
template <class F>
void ForLines(const AroundAxis& at, const Args& args, F&& fn) {
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ParallelFor(args.threads, at.outer * at.inner, RowGrain(at.size),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t base = i / at.inner * at.size * at.inner + i % at.inner;
                      fn(args.In<T>(0) + base, args.Out<T>(0) + base, at.inner, at.size);
                    }
                  });
    }
  });
}

template <class T>
double At(const T* x, int64_t i) {
  return static_cast<double>(x[i]);
}
template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

// Input i as doubles; empty when it is absent.
std::vector<double> Doubles(const Args& args, size_t i) {
  if (!args.has_input(i)) return {};
  std::vector<double> out(static_cast<size_t>(args.in(i).elements()));
  DispatchDType(args.in(i).dtype, [&]<class T>(TypeTag<T>) {
    for (size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(args.In<T>(i)[k]);
  });
  return out;
}

Status Softmax(const SoftmaxAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  ForLines(at, args, [&]<class T>(const T* x, T* y, int64_t stride, int64_t n) {
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; ++k) max = std::fmax(max, At(x, k * stride));
    for (int64_t k = 0; k < n; ++k) sum += std::exp(At(x, k * stride) - max);
    for (int64_t k = 0; k < n; ++k) {
      const double z = At(x, k * stride) - max;
      y[k * stride] = To<T>(attrs.log ? z - std::log(sum) : std::exp(z) / sum);
    }
  });
  return Status();
}

Status BatchNorm(const BatchNormAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  const auto scale = Doubles(args, 1), offset = Doubles(args, 2), mean = Doubles(args, 3);
  const auto variance = Doubles(args, 4);
  std::vector<double> factor(scale.size());
  for (size_t c = 0; c < factor.size(); ++c) {
    factor[c] = scale[c] / std::sqrt(variance[c] + attrs.epsilon);
  }
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const int64_t n = at.outer * at.size * at.inner;
      ParallelFor(args.threads, n, 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t c = i / at.inner % at.size;
          args.Out<T>(0)[i] = To<T>((At(args.In<T>(0), i) - mean[c]) * factor[c] + offset[c]);
        }
      });
    }
  });
  return Status();
}

// A scale or offset broadcast to the normalised sizes; empty when absent.
std::vector<double> Stretched(const Args& args, size_t i, int axis) {
  std::vector<double> values = Doubles(args, i);
  if (values.empty()) return values;
  const Shape shape = args.in(0).shape;
  const Shape normalized(shape.begin() + axis, shape.end()), own = args.in(i).shape;
  const BroadcastAxes axes = MergeBroadcast(normalized, {&own, 1});
  if (axes.dense(0)) return values;
  std::vector<double> out(static_cast<size_t>(axes.elements));
  for (int64_t k = 0; k < axes.elements; ++k) {
    int64_t from = 0, rest = k;
    for (int a = axes.rank; a-- > 0; rest /= axes.sizes[a]) {
      from += rest % axes.sizes[a] * axes.strides[0][a];
    }
    out[k] = values[from];
  }
  return out;
}

template <bool centered>
Status LayerNorm(const LayerNormAttrs& attrs, const Args& args) {
  const Shape shape = args.in(0).shape;
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const AroundAxis rows = {shape.Product(0, axis), shape.Product(axis, shape.rank()), 1};
  const auto scale = Stretched(args, 1, axis), offset = Stretched(args, 2, axis);
  ForLines(rows, args, [&]<class T>(const T* x, T* y, int64_t, int64_t n) {
    double mean = 0, square = 0;
    if (centered) {
      for (int64_t k = 0; k < n; ++k) mean += At(x, k);
      mean /= static_cast<double>(n);
    }
    for (int64_t k = 0; k < n; ++k) square += (At(x, k) - mean) * (At(x, k) - mean);
    const double factor = 1 / std::sqrt(square / static_cast<double>(n) + attrs.epsilon);
    for (int64_t k = 0; k < n; ++k) {
      double v = (At(x, k) - mean) * factor;
      if (!scale.empty()) v *= scale[k];
      if (!offset.empty()) v += offset[k];
      y[k] = To<T>(v);
    }
  });
  return Status();
}

// Channels last. The channels of each sample form `groups` groups, and each group has its own mean
// and variance over its channels and all positions.
Status NormalizeGroups(const Args& args, int64_t groups, double epsilon) {
  const Shape shape = args.in(0).shape;
  const int64_t samples = shape[0], channels = shape.back();
  const int64_t places = shape.Product(1, shape.rank() - 1);
  const int64_t width = channels / std::max<int64_t>(1, groups), n = places * width;
  const auto scale = Doubles(args, 1), offset = Doubles(args, 2);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ParallelFor(args.threads, samples * groups, RowGrain(n), [&](int64_t begin, int64_t end) {
        Lookout look(args.threads);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % groups * width;
          const int64_t base = i / groups * places * channels + first;
          const T* x = args.In<T>(0) + base;
          T* y = args.Out<T>(0) + base;
          double mean = 0, square = 0;
          for (int64_t p = 0; p < places; ++p) {
            if (look.Ended(width)) return;
            for (int64_t c = 0; c < width; ++c) mean += At(x, p * channels + c);
          }
          mean /= static_cast<double>(n);
          for (int64_t p = 0; p < places; ++p) {
            if (look.Ended(width)) return;
            for (int64_t c = 0; c < width; ++c) {
              const double d = At(x, p * channels + c) - mean;
              square += d * d;
            }
          }
          const double factor = 1 / std::sqrt(square / static_cast<double>(n) + epsilon);
          for (int64_t p = 0; p < places; ++p) {
            if (look.Ended(width)) return;
            for (int64_t c = 0; c < width; ++c) {
              const int64_t at = p * channels + c;
              y[at] = To<T>((At(x, at) - mean) * factor * scale[first + c] + offset[first + c]);
            }
          }
        }
      });
    }
  });
  return Status();
}

Status InstanceNorm(const InstanceNormAttrs& attrs, const Args& args) {
  return NormalizeGroups(args, args.in(0).shape.back(), attrs.epsilon);
}

Status GroupNorm(const GroupNormAttrs& attrs, const Args& args) {
  return NormalizeGroups(args, attrs.groups, attrs.epsilon);
}

Status Lrn(const LrnAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  const int64_t before = (attrs.size - 1) / 2, behind = attrs.size - 1 - before;
  ForLines(at, args, [&]<class T>(const T* x, T* y, int64_t stride, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      double sum = 0;
      const int64_t last = behind < n - 1 - k ? k + behind : n - 1;
      for (int64_t j = std::max<int64_t>(0, k - before); j <= last; ++j) {
        sum += At(x, j * stride) * At(x, j * stride);
      }
      const double base = attrs.bias + attrs.alpha / static_cast<double>(attrs.size) * sum;
      y[k * stride] = To<T>(At(x, k * stride) / std::pow(base, attrs.beta));
    }
  });
  return Status();
}

Status LpNormalize(const LpNormalizeAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(args.in(0).shape, attrs.axis));
  ForLines(at, args, [&]<class T>(const T* x, T* y, int64_t stride, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double v = At(x, k * stride);
      sum += attrs.p == 1 ? std::fabs(v) : v * v;
    }
    const double norm = attrs.p == 1 ? sum : std::sqrt(sum);
    for (int64_t k = 0; k < n; ++k) {
      y[k * stride] = To<T>(norm == 0 ? 0 : At(x, k * stride) / norm);
    }
  });
  return Status();
}

// The row with a vectorised kernel beside it.
constexpr KernelRow Fast(KernelRow row, decltype(KernelRow::fast) fast) {
  row.fast = fast;
  return row;
}

const KernelRow kRows[] = {
    Fast(Row<Softmax>("Softmax", kFloats), &MakeFastSoftmax),
    Row<BatchNorm>("BatchNorm", kFloats),
    Fast(Row<LayerNorm<true>>("LayerNorm", kFloats), &MakeFastLayerNorm),
    Fast(Row<LayerNorm<false>>("RmsNorm", kFloats), &MakeFastLayerNorm),
    Fast(Row<InstanceNorm>("InstanceNorm", kFloats), &MakeFastInstanceNorm),
    Fast(Row<GroupNorm>("GroupNorm", kFloats), &MakeFastGroupNorm),
    Row<Lrn>("LRN", kFloats),
    Row<LpNormalize>("LpNormalize", kFloats),
};

}  // namespace

std::span<const KernelRow> NormKernels() { return kRows; }

}  // namespace oncilla::cpu
