// The fast DeformConv for float. For a strip of output pixels, the taps are interpolated between
// pixels of the input into rows, with vectors of channels, and the rows are multiplied by the
// filter.
//
//   x[N, H, W, C]  --offsets, mask-->  rows[pixels of the strip][taps][C]  --filter-->  y
//
// A strip is as long as its rows fit into a part of the second-level cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/deform_conv.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/conv/deform_conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/conv/fused_convs.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"
#include "engine/ops/nn/columns.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The four pixels around a position, and the weight of each; pixels outside the image have weight
// 0.
struct Corners {
  const float* at[4];
  float weight[4];
};
inline Corners CornersOf(const DeformPlaces& p, const float* image, double row, double column,
                         float factor) {
  Corners corners;
  const int64_t height = p.axes[0].in, width = p.axes[1].in;
  const double top = std::floor(row), left = std::floor(column);
  // Also false for NaN.
  const bool touches = row > -1 && row < static_cast<double>(height) && column > -1 &&
                       column < static_cast<double>(width);
  for (int i = 0; i < 4; ++i) {
    const double r = top + (i >> 1), c = left + (i & 1);
    const bool inside = touches && r >= 0 && r < static_cast<double>(height) && c >= 0 &&
                        c < static_cast<double>(width);
    const double weight = (1 - std::fabs(row - r)) * (1 - std::fabs(column - c));
    corners.weight[i] = inside ? static_cast<float>(weight) * factor : 0;
    const int64_t pixel =
        inside ? static_cast<int64_t>(r) * width + static_cast<int64_t>(c) : int64_t{0};
    corners.at[i] = inside ? image + pixel * p.channels : nullptr;
  }
  return corners;
}

// Interpolates channels [begin, end) of a tap. Pixels outside the image are skipped: the memory at
// their addresses could hold an infinity, whose product with 0 is NaN.
HWY_INLINE void Blend(const Corners& corners, int64_t begin, int64_t end, float* to) {
  const Floats d;
  for (int64_t c = begin; c < end; c += kLanes) {
    Vector sum = hn::Zero(d);
    ONCILLA_UNROLL for (int i = 0; i < 4; ++i) {
      if (corners.at[i] == nullptr) continue;
      sum = hn::MulAdd(LoadSome(corners.at[i] + c, end - c), hn::Set(d, corners.weight[i]), sum);
    }
    StoreSome(sum, to + c, end - c);
  }
}

// Writes the rows of pixels [begin, end) to `to`.
void ReadTaps(const DeformPlaces& p, int64_t begin, int64_t end, float* to) {
  const WindowAxis &height = p.axes[0], &width = p.axes[1];
  const int64_t taps = p.taps(), each = p.channels / p.offset_groups;
  for (int64_t place = begin; place < end; ++place, to += taps * p.channels) {
    const int64_t column = place % width.out, row = place / width.out % height.out;
    const int64_t sample = place / width.out / height.out;
    const float* image = p.x + sample * height.in * width.in * p.channels;
    for (int64_t group = 0; group < p.offset_groups; ++group) {
      const int64_t first = (place * p.offset_groups + group) * taps;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float* offset = p.offset + (first + tap) * 2;
        const double r =
            static_cast<double>(height.start(row) + tap / width.kernel * height.dilation) +
            static_cast<double>(offset[0]);
        const double c =
            static_cast<double>(width.start(column) + tap % width.kernel * width.dilation) +
            static_cast<double>(offset[1]);
        const float factor = p.mask != nullptr ? p.mask[first + tap] : 1;
        Blend(CornersOf(p, image, r, c, factor), group * each, (group + 1) * each,
              to + tap * p.channels);
      }
    }
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

namespace {

HWY_EXPORT(ReadTaps);

// Inputs: x, filter (packed), offset, bias?, mask?.
class DeformProduct : public CpuKernel {
 public:
  DeformProduct(const NodeView& node, const DeformConvAttrs& attrs,
                const std::array<WindowAxis, 2>& axes)
      : CpuKernel(node), attrs_(attrs), axes_(axes) {
    const Shape x = node.inputs[0].desc().shape, filter = node.inputs[1].desc().shape;
    channels_ = x[3];
    pixels_ = x[0] * axes[0].out * axes[1].out;
    const int64_t row = filter[0] * filter[1] * channels_;
    constexpr int64_t kFloatsOfAStrip = int64_t{1} << 17;
    strip_ = std::clamp<int64_t>(kFloatsOfAStrip / row, 32, pixels_ > 32 ? pixels_ : 32);
    for (int64_t tap = 0; tap < filter[0] * filter[1]; ++tap) taps_.push_back(tap * channels_);
    sizes_.tap_count = std::ssize(taps_);
    sizes_.run = filter[2];
    sizes_.columns = filter[3] / attrs.groups;
    sizes_.c_step = filter[3];
    sizes_.row_step = row;
    packed_elements_ = PackedElements(sizes_.depth(), sizes_.columns);
  }

  int64_t scratch_bytes() const override {
    return SaturatingMul(SaturatingMul(strip_, sizes_.row_step), sizeof(float));
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), " packed, of taps of ", strip_, " pixels at a time");
  }

  Status Run(const Args& args) const override {
    const DeformPlaces places{axes_,
                              channels_,
                              attrs_.offset_groups,
                              args.In<float>(0),
                              args.In<float>(2),
                              args.has_input(4) ? args.In<float>(4) : nullptr};
    auto* rows = reinterpret_cast<float*>(args.scratch);
    for (int64_t first = 0; first < pixels_; first += strip_) {
      const int64_t count = std::min(strip_, pixels_ - first);
      ParallelFor(args.threads, count, 4, [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(ReadTaps)
        (places, first + begin, first + end, rows + begin * sizes_.row_step);
      });
      Multiply(args, rows, first, count);
    }
    return Status();
  }

 private:
  // Computes the products of all groups for `count` rows.
  void Multiply(const Args& args, const float* rows, int64_t first, int64_t count) const {
    Product<float> all;
    static_cast<ProductSizes&>(all) = sizes_;
    all.line_rows = count;
    all.taps = taps_.data();
    const Split split = SplitOf(all, attrs_.groups);
    ParallelFor(args.threads, attrs_.groups * split.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / split.tasks(), column = group * all.columns;
        Product<float> p = all;
        p.a = rows + group * all.run;
        p.b = args.In<float>(1) + group * packed_elements_;
        p.c = args.Out<float>(0) + first * all.c_step + column;
        p.epilogue.bias = args.has_input(3) ? args.In<float>(3) + column : nullptr;
        RunTask(p, split, i % split.tasks());
      }
    });
  }

  const DeformConvAttrs attrs_;
  const std::array<WindowAxis, 2> axes_;
  int64_t channels_ = 0, pixels_ = 0, strip_ = 0, packed_elements_ = 0;
  std::vector<int64_t> taps_;
  ProductSizes sizes_;  // without taps and the number of rows
};

// Depends on the filter alone, as packings do.
bool IsFastDeformConv(const Fact& filter) {
  return filter.constant && filter.dtype == DType::kF32 && filter.desc().elements() > 0;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastDeformConv(const NodeView& node) {
  const TensorDesc x = node.inputs[0].desc(), filter = node.inputs[1].desc();
  if (!IsFastDeformConv(node.inputs[1]) || node.outputs[0].desc().elements() == 0) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<DeformConvAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const auto axes, DeformAxes(attrs, x.shape, filter.shape));
  return std::unique_ptr<CpuKernel>(std::make_unique<DeformProduct>(node, attrs, axes));
}

Result<CpuPacking> DeformConvPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<DeformConvAttrs>(*node.attrs));
  if (input != 1 || !IsFastDeformConv(fact)) {
    return CpuPacking{"dense", fact.desc().bytes(), nullptr};
  }
  return PanelPacking(fact.desc(), attrs.groups);
}

}  // namespace oncilla::cpu
#endif
