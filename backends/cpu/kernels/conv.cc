// Convolutions on the CPU: plain, exact code.
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/windows.h"
#include "engine/ops/math/activation.h"
#include "engine/ops/nn/conv.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

Status Conv(const ConvAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, args.node));
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
      const T* residual = args.has_input(3) ? args.In<T>(3) : nullptr;
      const int64_t grain = GrainOf(g.taps() * in_group * g.out_channels, 16);
      ParallelFor(args.threads, g.batch * g.out_pixels(), grain, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(static_cast<size_t>(g.out_channels));
        for (int64_t pixel = begin; pixel < end; ++pixel) {
          for (int64_t c = 0; c < g.out_channels; ++c) {
            sums[c] = bias != nullptr ? static_cast<double>(bias[c]) : 0;
            if (residual != nullptr) {
              sums[c] += static_cast<double>(residual[pixel * g.out_channels + c]);
            }
          }
          ForTaps(g, pixel, [&](int64_t at, int64_t tap) {
            const T* x = args.In<T>(0) + at * g.in_channels;
            const T* filter = args.In<T>(1) + tap * in_group * g.out_channels;
            for (int64_t i = 0; i < g.in_channels; ++i) {
              const auto value = static_cast<double>(x[i]);
              const int64_t first = i / in_group * out_group;
              const T* row = filter + i % in_group * g.out_channels;
              for (int64_t c = first; c < first + out_group; ++c) {
                sums[c] += value * static_cast<double>(row[c]);
              }
            }
          });
          T* y = args.Out<T>(0) + pixel * g.out_channels;
          for (int64_t c = 0; c < g.out_channels; ++c) {
            y[c] = static_cast<T>(Apply(activation, sums[c]));
          }
        }
      });
    }
  });
  return Status();
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
    Row<ConvTranspose>("ConvTranspose", kFloats),
};

}  // namespace

std::span<const KernelRow> ConvKernels() { return kRows; }

}  // namespace oncilla::cpu
