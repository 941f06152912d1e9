// ConvTranspose with few output channels: one product for all taps of a line of the input, whose
// columns are then added to the output lines that they belong to.
#include "backends/cpu/conv/conv_transpose_fold.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/shares_scratch.h"

namespace oncilla::cpu {
namespace {

// The most floats of a product that a worker holds: half of a second-level cache.
constexpr int64_t kStripFloats = 64 << 10;

// a / b rounded up for a >= 0; at most 0 for negative a.
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The filter as operands of products: one product for each group and each tap of the depth. Its
// columns are the taps of height and width times the output channels.
struct FoldedFilter {
  FoldedFilter(const Shape& filter, int64_t groups)
      : groups(groups), out_group(filter[filter.rank() - 2]), in_channels(filter.back()) {
    const int spatial = filter.rank() - 2;
    if (spatial == 3) depth_taps = filter[0];
    columns = filter.elements() / in_channels / depth_taps;
    elements = PackedElements(in_group(), columns);
  }
  int64_t in_group() const { return in_channels / groups; }

  int64_t groups, out_group, in_channels, depth_taps = 1;
  int64_t columns = 0;   // of a product
  int64_t elements = 0;  // of its packed filter
};

class FoldedConvTranspose : public CpuKernel, public SharesScratch {
 public:
  FoldedConvTranspose(const NodeView& node, const WindowGeometry& g)
      : CpuKernel(node), g_(g), filter_(node.inputs[1].desc().shape, g.groups) {
    const WindowAxis& height = g.axis[1];
    line_floats_ = SaturatingMul(g.axis[2].out, filter_.columns);
    // Lines of the input at the border of two strips are multiplied in both, so a strip has several
    // times as many lines as that.
    const int64_t shared = CeilDiv(height.extent(), height.stride);
    const int64_t fit = kStripFloats / std::max<int64_t>(1, line_floats_);
    const int64_t lines = std::min(std::max(fit, 4 * shared), height.out + shared) - shared;
    strip_ = std::min(height.in, SaturatingMul(std::max<int64_t>(1, lines), height.stride));
    strips_ = CeilDiv(height.in, strip_);
    held_lines_ = std::min(height.out, (strip_ - 1 + height.extent() - 1) / height.stride + 1);
  }

  int64_t scratch_bytes() const override {
    return SaturatingMul(SaturatingMul(sizeof(float), workers()),
                         SaturatingMul(held_lines_, line_floats_));
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), " packed, ", filter_.columns, " columns folded, strips of ",
                  strip_, " rows");
  }

  Status Run(const Args& args) const override {
    auto* scratch = reinterpret_cast<float*>(args.scratch);
    const int64_t strips = g_.batch * g_.axis[0].in * strips_;
    ParallelForWorkers(args.threads, strips, 1, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t i = begin; i < end; ++i) {
        RunStrip(args, i, scratch + worker * held_lines_ * line_floats_);
      }
    });
    return Status();
  }

 private:
  void RunStrip(const Args& args, int64_t strip, float* products) const {
    static constexpr int64_t kOneTap = 0;
    const WindowAxis &depth = g_.axis[0], &height = g_.axis[1], &width = g_.axis[2];
    const int64_t plane = strip / strips_, sample = plane / depth.in, od = plane % depth.in;
    const int64_t first = strip % strips_ * strip_, last = std::min(first + strip_, height.in);
    const int64_t row = width.in * g_.out_channels;
    float* y = args.Out<float>(0) + plane * height.in * row;
    FillWithBias(args, y + first * row, (last - first) * width.in);

    // The lines of the input that these outputs see.
    const int64_t span = height.extent() - 1;
    const int64_t from =
        std::max<int64_t>(0, CeilDiv(first + height.pad_begin - span, height.stride));
    const int64_t until = std::min(height.out, (last - 1 + height.pad_begin) / height.stride + 1);
    if (from >= until) return;
    Product<float> p;
    p.taps = &kOneTap;
    p.line_rows = (until - from) * width.out;
    p.row_step = g_.in_channels;
    p.run = filter_.in_group();
    p.columns = p.c_step = filter_.columns;
    p.c = products;
    for (int64_t kd = 0; kd < depth.kernel; ++kd) {
      const int64_t at = od + depth.pad_begin - kd * depth.dilation;
      if (at < 0 || at % depth.stride != 0 || at / depth.stride >= depth.out) continue;
      const int64_t line = (sample * depth.out + at / depth.stride) * height.out + from;
      for (int64_t group = 0; group < g_.groups; ++group) {
        p.a = args.In<float>(0) + line * width.out * g_.in_channels + group * p.run;
        p.b = args.In<float>(1) + (group * depth.kernel + kd) * filter_.elements;
        RunTask(p, Split(), 0);
        for (int64_t i = from; i < until; ++i) {
          for (int64_t kh = 0; kh < height.kernel; ++kh) {
            const int64_t o = height.start(i) + kh * height.dilation;
            if (o < first || o >= last) continue;
            FoldLine(products + (i - from) * line_floats_ + kh * width.kernel * filter_.out_group,
                     y + o * row + group * filter_.out_group);
          }
        }
      }
    }
  }

  void FillWithBias(const Args& args, float* y, int64_t pixels) const {
    if (!args.has_input(2)) {
      std::fill_n(y, pixels * g_.out_channels, 0.0f);
      return;
    }
    for (int64_t i = 0; i < pixels; ++i, y += g_.out_channels) {
      std::copy_n(args.In<float>(2), g_.out_channels, y);
    }
  }

  // Adds the products of one line of the input, for one tap of the height, to the output line that
  // they belong to.
  void FoldLine(const float* products, float* y) const {
    const WindowAxis& width = g_.axis[2];
    const int64_t columns = filter_.columns, channels = filter_.out_group;
    const int64_t step = width.stride * g_.out_channels;
    for (int64_t kw = 0; kw < width.kernel; ++kw, products += channels) {
      const int64_t shift = kw * width.dilation - width.pad_begin;
      const int64_t begin = shift < 0 ? CeilDiv(-shift, width.stride) : 0;
      const int64_t end =
          shift < width.in ? std::min(width.out, CeilDiv(width.in - shift, width.stride)) : 0;
      for (int64_t i = begin; i < end; ++i) {
        const float* from = products + i * columns;
        float* to = y + shift * g_.out_channels + i * step;
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
      }
    }
  }

  const WindowGeometry g_;
  const FoldedFilter filter_;
  int64_t line_floats_;     // of the products of a line of the input
  int64_t strip_, strips_;  // lines of the output in a strip, and strips of a plane
  int64_t held_lines_;      // of the input, whose products a worker holds
};

}  // namespace

bool FoldsConvTranspose(const Shape& filter, int64_t groups) {
  const int64_t out_group = filter[filter.rank() - 2];
  // One input channel for each group would be a product of depth one.
  return 4 * out_group <= PanelColumns() && (groups == 1 || filter.back() > groups);
}

std::unique_ptr<CpuKernel> MakeFoldedConvTranspose(const NodeView& node, const WindowGeometry& g) {
  return std::make_unique<FoldedConvTranspose>(node, g);
}

CpuPacking FoldedConvTransposePacking(const TensorDesc& filter, int64_t groups) {
  const FoldedFilter f(filter.shape, groups);
  return CpuPacking{
      StrCat("folded", PanelColumns(), " g", groups),
      SaturatingMul(int64_t{sizeof(float)}, SaturatingMul(f.groups * f.depth_taps, f.elements)),
      [f](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
        const float* from = constant.As<float>().data();
        auto* packed = reinterpret_cast<float*>(to.data());
        for (int64_t group = 0; group < f.groups; ++group) {
          for (int64_t kd = 0; kd < f.depth_taps; ++kd, packed += f.elements) {
            Pack(threads, from + kd * f.columns * f.in_channels + group * f.in_group(), 1,
                 f.in_channels, f.in_group(), f.columns, packed);
          }
        }
        return Status();
      }};
}

}  // namespace oncilla::cpu
