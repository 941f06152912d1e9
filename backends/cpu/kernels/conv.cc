// Convolutions on the CPU: plain, exact code.
#include <algorithm>
#include <vector>

#include "backends/cpu/conv/fused_convs.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/windows.h"
#include "engine/ops/math/activation.h"
#include "engine/ops/nn/fused_conv.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// The operands of a convolution. X and Y are T, or double for intermediate tensors.
template <class X, class T, class Y>
struct Convolution {
  const X* x;
  const T* gate;  // one factor per sample and channel, or null
  const T* filter;
  const T* bias;      // or null
  const T* residual;  // or null
  Y* y;
};

template <class X, class T, class Y>
void Convolve(const Threads& threads, const WindowGeometry& g, Activation activation,
              const Convolution<X, T, Y>& c) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const int64_t grain = GrainOf(g.taps() * in_group * g.out_channels, 16);
  ParallelFor(threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(g.out_channels));
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      for (int64_t n = 0; n < g.out_channels; ++n) {
        sums[n] = c.bias != nullptr ? static_cast<double>(c.bias[n]) : 0;
        if (c.residual != nullptr) {
          sums[n] += static_cast<double>(c.residual[pixel * g.out_channels + n]);
        }
      }
      const T* gate = c.gate != nullptr ? c.gate + pixel / g.out_pixels() * g.in_channels : nullptr;
      ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
        const X* x = c.x + at * g.in_channels;
        const T* filter = c.filter + tap * in_group * g.out_channels;
        for (int64_t i = 0; i < g.in_channels; ++i) {
          auto value = static_cast<double>(x[i]);
          if (gate != nullptr) value *= static_cast<double>(gate[i]);
          const int64_t first = i / in_group * out_group;
          const T* row = filter + i % in_group * g.out_channels;
          for (int64_t n = first; n < first + out_group; ++n) {
            sums[n] += value * static_cast<double>(row[n]);
          }
        }
      });
      Y* y = c.y + pixel * g.out_channels;
      for (int64_t n = 0; n < g.out_channels; ++n)
        y[n] = static_cast<Y>(Apply(activation, sums[n]));
    }
  });
}

Status Conv(const ConvAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, args.node));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      Convolve<T, T, T>(
          args.threads, g, activation,
          {args.In<T>(0), nullptr, args.In<T>(1), args.has_input(2) ? args.In<T>(2) : nullptr,
           args.has_input(3) ? args.In<T>(3) : nullptr, args.Out<T>(0)});
    }
  });
  return Status();
}

Status GatedConv(const ConvAttrs& attrs, const Args& args) {
  using In = GatedConvInput;
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, args.node));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const auto optional = [&](size_t i) { return args.has_input(i) ? args.In<T>(i) : nullptr; };
      Convolve<T, T, T>(args.threads, g, activation,
                        {args.In<T>(In::kX), args.In<T>(In::kGate), args.In<T>(In::kFilter),
                         optional(In::kBias), optional(In::kResidual), args.Out<T>(0)});
    }
  });
  return Status();
}

// y[c] = the mean of x[pixel][c].
template <class T>
void MeanOf(const double* x, int64_t pixels, int64_t channels, T* y) {
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += x[i * channels + c];
    y[c] = static_cast<T>(sum / static_cast<double>(pixels));
  }
}

// Computes the convolutions one after the other, for one sample at a time; intermediate tensors are
// double.
template <class T>
Status RunInvertedResidual(const InvertedResidualAttrs& attrs, const Args& args) {
  using In = InvertedResidualInput;
  const auto optional = [&](size_t i) { return args.has_input(i) ? args.In<T>(i) : nullptr; };
  ONCILLA_ASSIGN(const Activation of_expand, ActivationFromName(attrs.expand_activation));
  ONCILLA_ASSIGN(const Activation of_depthwise, ActivationFromName(attrs.depthwise_activation));
  ONCILLA_ASSIGN(const Activation of_y, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(InvertedResidualGeometry g, GeometryOf(attrs, args.node));
  const int64_t batch = args.in(0).shape[0], channels = g.depthwise.in_channels;
  const int64_t pixels = g.depthwise.out_pixels();
  g.expand.batch = g.depthwise.batch = 1;
  std::vector<double> expanded(static_cast<size_t>(g.depthwise.in_pixels() * channels));
  std::vector<double> filtered(static_cast<size_t>(pixels * channels));
  const int64_t columns = g.columns > 0 ? g.columns : channels;
  const int64_t in_elements = args.in(0).elements() / std::max<int64_t>(batch, 1);
  for (int64_t n = 0; n < batch; ++n) {
    const T* x = args.In<T>(In::kX) + n * in_elements;
    T* y = args.Out<T>(0) + n * pixels * columns;
    if (g.expands) {
      Convolve<T, T, double>(args.threads, g.expand, of_expand,
                             {x, nullptr, args.In<T>(In::kExpand), optional(In::kExpandBias),
                              nullptr, expanded.data()});
    } else {
      std::transform(x, x + expanded.size(), expanded.begin(),
                     [](T v) { return static_cast<double>(v); });
    }
    Convolve<double, T, double>(args.threads, g.depthwise, of_depthwise,
                                {expanded.data(), nullptr, args.In<T>(In::kDepthwise),
                                 optional(In::kDepthwiseBias), nullptr, filtered.data()});
    if (attrs.mean) MeanOf(filtered.data(), pixels, channels, args.Out<T>(1) + n * channels);
    if (g.columns == 0) {
      std::transform(filtered.begin(), filtered.end(), y,
                     [](double v) { return static_cast<T>(v); });
      continue;
    }
    WindowGeometry project;
    project.in_channels = channels;
    project.out_channels = columns;
    project.axis[2].in = project.axis[2].out = pixels;
    const T* residual = optional(In::kResidual);
    if (residual != nullptr) residual += n * pixels * columns;
    Convolve<double, T, T>(args.threads, project, of_y,
                           {filtered.data(), nullptr, args.In<T>(In::kProject),
                            optional(In::kProjectBias), residual, y});
  }
  return Status();
}

Status InvertedResidual(const InvertedResidualAttrs& attrs, const Args& args) {
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) status = RunInvertedResidual<T>(attrs, args);
  });
  return status;
}

Status ConvTranspose(const ConvTransposeAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvTransposeGeometry(attrs, args.node));
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
      const int64_t grain = GrainOf(g.taps() * in_group * g.out_channels, 16);
      ParallelFor(args.threads, g.batch * g.in_pixels(), grain, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(static_cast<size_t>(g.out_channels));
        for (int64_t pixel = begin; pixel < end; ++pixel) {
          for (int64_t c = 0; c < g.out_channels; ++c) {
            sums[c] = bias != nullptr ? static_cast<double>(bias[c]) : 0;
          }
          ForWindowsOver(g, pixel, [&](int64_t at, int64_t tap) {
            const T* x = args.In<T>(0) + at * g.in_channels;
            const T* filter = args.In<T>(1) + tap * out_group * g.in_channels;
            for (int64_t c = 0; c < g.out_channels; ++c) {
              const int64_t first = c / out_group * in_group;
              const T* row = filter + c % out_group * g.in_channels;
              double sum = 0;
              for (int64_t i = first; i < first + in_group; ++i) {
                sum += static_cast<double>(x[i]) * static_cast<double>(row[i]);
              }
              sums[c] += sum;
            }
          });
          T* y = args.Out<T>(0) + pixel * g.out_channels;
          for (int64_t c = 0; c < g.out_channels; ++c) y[c] = static_cast<T>(sums[c]);
        }
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Conv>("Conv", kFloats, &MakeFastConv, &ConvPacking),
    Row<GatedConv>("GatedConv", kFloats, &MakeFastGatedConv, &GatedConvPacking),
    Row<InvertedResidual>("InvertedResidual", kFloats, &MakeFastInvertedResidual,
                          &InvertedResidualPacking),
    Row<ConvTranspose>("ConvTranspose", kFloats, &MakeFastConvTranspose, &ConvTransposePacking),
};

}  // namespace

std::span<const KernelRow> ConvKernels() { return kRows; }

}  // namespace oncilla::cpu
