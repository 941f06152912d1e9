// Folding columns of windows back into images, and deformable convolution: plain, exact code, sums
// in double.
#include "engine/ops/nn/columns.h"

#include <cmath>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Adds the columns of one channel to its image. `tap` counts through the block, `place` through the
// windows.
template <class T>
void FoldChannel(const std::vector<WindowAxis>& axes, const T* x, int64_t columns, Lookout& look,
                 std::vector<double>& image) {
  int64_t taps = 1;
  for (const WindowAxis& axis : axes) taps *= axis.kernel;
  for (int64_t tap = 0; tap < taps; ++tap) {
    if (look.Ended(columns * std::ssize(axes))) return;
    for (int64_t place = 0; place < columns; ++place) {
      int64_t at = 0, stride = 1, left_tap = tap, left_place = place;
      bool inside = true;
      for (size_t a = axes.size(); a-- > 0;) {
        const WindowAxis& axis = axes[a];
        const int64_t i =
            axis.start(left_place % axis.out) + left_tap % axis.kernel * axis.dilation;
        inside = inside && i >= 0 && i < axis.in;
        at += i * stride;
        stride *= axis.in;
        left_place /= axis.out;
        left_tap /= axis.kernel;
      }
      if (inside) {
        image[static_cast<size_t>(at)] += static_cast<double>(x[tap * columns + place]);
      }
    }
  }
}

Status FoldColumns(const FoldColumnsAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto image, args.Ints(1, "image"));
  ONCILLA_ASSIGN(const auto block, args.Ints(2, "block"));
  ONCILLA_ASSIGN(const auto axes, FoldAxes(attrs, image, block));
  const Shape in = args.in(0).shape, out = args.out(0).shape;
  const int64_t columns = in[2], pixels = out.Product(2, out.rank());
  const int64_t channels = out[0] * out[1];
  const int64_t taps = out[1] == 0 ? 0 : in[1] / out[1];
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ParallelFor(args.threads, channels, 1, [&](int64_t begin, int64_t end) {
        Lookout look(args.threads);
        for (int64_t c = begin; c < end; ++c) {
          std::vector<double> sum(static_cast<size_t>(pixels), 0.0);
          FoldChannel(axes, args.In<T>(0) + c * taps * columns, columns, look, sum);
          T* y = args.Out<T>(0) + c * pixels;
          for (int64_t i = 0; i < pixels; ++i) y[i] = static_cast<T>(sum[static_cast<size_t>(i)]);
        }
      });
    }
  });
  return Status();
}

// Bilinear interpolation of one channel at a fractional position; pixels outside the image are
// zero.
template <class T>
double Between(const T* x, const Shape& shape, double row, double column, int64_t channel) {
  const auto height = static_cast<double>(shape[1]), width = static_cast<double>(shape[2]);
  // Also false for NaN.
  if (!(row > -1 && row < height && column > -1 && column < width)) return 0;
  const double top = std::floor(row), left = std::floor(column);
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    const double r = top + (i >> 1), c = left + (i & 1);
    if (r < 0 || r >= height || c < 0 || c >= width) continue;
    const double weight = (1 - std::fabs(row - r)) * (1 - std::fabs(column - c));
    const auto at = static_cast<int64_t>(r) * shape[2] + static_cast<int64_t>(c);
    sum += weight * static_cast<double>(x[at * shape[3] + channel]);
  }
  return sum;
}

// Computes all output channels at one position: interpolates the taps of all input channels once,
// then multiplies them by the filter.
template <class T>
void DeformPlace(const DeformConvAttrs& attrs, const Args& args,
                 const std::array<WindowAxis, 2>& axes, int64_t place, std::vector<double>& read) {
  const Shape x = args.in(0).shape, filter = args.in(1).shape, y = args.out(0).shape;
  const int64_t column = place % y[2], row = place / y[2] % y[1], sample = place / y[2] / y[1];
  const int64_t taps = filter[0] * filter[1], channels = x[3],
                each = channels / attrs.offset_groups;
  const T* image = args.In<T>(0) + sample * x[1] * x[2] * channels;
  const T* offset = args.In<T>(2) + place * attrs.offset_groups * taps * 2;
  const T* mask = args.has_input(4) ? args.In<T>(4) + place * attrs.offset_groups * taps : nullptr;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = c / std::max<int64_t>(each, 1) * taps;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const double r =
          static_cast<double>(axes[0].start(row) + tap / filter[1] * axes[0].dilation) +
          static_cast<double>(offset[(first + tap) * 2]);
      const double s =
          static_cast<double>(axes[1].start(column) + tap % filter[1] * axes[1].dilation) +
          static_cast<double>(offset[(first + tap) * 2 + 1]);
      const double m = mask == nullptr ? 1 : static_cast<double>(mask[first + tap]);
      read[static_cast<size_t>(tap * channels + c)] = m * Between(image, x, r, s, c);
    }
  }
  const int64_t outputs = filter[3], in_group = filter[2], out_group = outputs / attrs.groups;
  const T* w = args.In<T>(1);
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = args.has_input(3) ? static_cast<double>(args.In<T>(3)[o]) : 0;
    const int64_t first = o / std::max<int64_t>(out_group, 1) * in_group;
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < in_group; ++c) {
        sum += static_cast<double>(w[(tap * in_group + c) * outputs + o]) *
               read[static_cast<size_t>(tap * channels + first + c)];
      }
    }
    args.Out<T>(0)[place * outputs + o] = static_cast<T>(sum);
  }
}

Status DeformConv(const DeformConvAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, filter = args.in(1).shape, y = args.out(0).shape;
  ONCILLA_ASSIGN(const auto axes, DeformAxes(attrs, x, filter));
  const int64_t taps = filter[0] * filter[1];
  const int64_t work = taps * (4 * x[3] + filter[2] * filter[3]);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ParallelFor(args.threads, y[0] * y[1] * y[2], GrainOf(work, 64),
                  [&](int64_t begin, int64_t end) {
                    std::vector<double> read(static_cast<size_t>(taps * x[3]));
                    for (int64_t place = begin; place < end; ++place) {
                      DeformPlace<T>(attrs, args, axes, place, read);
                    }
                  });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<DeformConv>("DeformConv", kFloats, &MakeFastDeformConv, &DeformConvPacking),
    Row<FoldColumns>("FoldColumns", kFloats),
};

}  // namespace

std::span<const KernelRow> ColumnsKernels() { return kRows; }

}  // namespace oncilla::cpu
