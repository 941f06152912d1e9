// The fast Conv for float: one product per group, over an input padded once; or depthwise.
//
// In a channels-last input a window's row is one run of memory, and the windows of neighbouring
// outputs start a constant step apart. So a convolution of any size, stride and dilation is a
// Product (gemm.h) without copying windows; a 1x1 one is a plain matrix product.
#include <algorithm>
#include <cstring>

#include "backends/cpu/depthwise.h"
#include "backends/cpu/fast.h"
#include "backends/cpu/gemm.h"
#include "engine/ops/conv.h"

namespace oncilla::cpu {
namespace {

Epilogue EpilogueOf(const Args& args, Activation activation) {
  return {args.has_input(2) ? args.In<float>(2) : nullptr,
          args.has_input(3) ? args.In<float>(3) : nullptr, activation};
}

class DepthwiseConv : public CpuKernel {
 public:
  DepthwiseConv(const NodeView& node, const WindowGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {}
  std::string description() const override { return "depthwise"; }

  Status Run(const Args& args) const override {
    RunDepthwise(args.threads, {g_, args.In<float>(0), args.In<float>(1), args.Out<float>(0),
                                EpilogueOf(args, activation_)});
    return Status();
  }

 private:
  const WindowGeometry g_;
  const Activation activation_;
};

class ProductConv : public CpuKernel {
 public:
  ProductConv(const NodeView& node, const WindowGeometry& g, Activation activation, bool packed)
      : CpuKernel(node), g_(g), activation_(activation), packed_(packed) {
    const int64_t channels = g.in_channels, in_group = channels / g.groups;
    for (int i = 0; i < kMaxSpatial; ++i) {
      const WindowAxis& axis = g.axis[i];
      const int64_t needed = (axis.out - 1) * axis.stride + axis.extent();
      size_[i] = axis.in;
      if (axis.pad_begin > 0 || needed > axis.in) {
        pads_ = true;
        size_[i] = needed;
      }
    }
    const int64_t step[kMaxSpatial] = {size_[1] * size_[2] * channels, size_[2] * channels,
                                       channels};
    const WindowAxis& width = g.axis[2];
    const bool whole_rows = g.groups == 1 && width.dilation == 1;
    product_.run = whole_rows ? width.kernel * channels : in_group;
    for (int64_t kd = 0; kd < g.axis[0].kernel; ++kd) {
      for (int64_t kh = 0; kh < g.axis[1].kernel; ++kh) {
        for (int64_t kw = 0; kw < (whole_rows ? 1 : width.kernel); ++kw) {
          taps_.push_back(kd * g.axis[0].dilation * step[0] + kh * g.axis[1].dilation * step[1] +
                          kw * width.dilation * step[2]);
        }
      }
    }
    product_.tap_count = static_cast<int64_t>(taps_.size());
    product_.columns = g.out_channels / g.groups;
    product_.c_step = g.out_channels;
    product_.row_step = width.stride * channels;
    const bool one_line = !pads_ && g.taps() == 1 && g.in_pixels() == g.out_pixels();
    if (one_line) {
      product_.line_rows = g.batch * g.out_pixels();
    } else {
      product_.line_rows = width.out;
      product_.line_count[0] = g.batch;
      product_.line_count[1] = g.axis[0].out;
      product_.line_count[2] = g.axis[1].out;
      product_.line_step[0] = size_[0] * step[0];
      product_.line_step[1] = g.axis[0].stride * step[0];
      product_.line_step[2] = g.axis[1].stride * step[1];
    }
    if (pads_) padded_floats_ = SaturatingMul(g.batch, SaturatingMul(size_[0], step[0]));
    packed_floats_ = PackedFloats(product_.depth(), product_.columns);
  }

  int64_t scratch_bytes() const override {
    const int64_t filter = packed_ ? 0 : g_.groups * packed_floats_;
    return SaturatingMul(4, SaturatingAdd(RoundedPadding(), filter));
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), packed_ ? " packed" : " packs", pads_ ? " pads" : "", " ",
                  product_.rows(), 'x', product_.columns, 'x', product_.depth(),
                  g_.groups > 1 ? StrCat(" in ", g_.groups, " groups") : "");
  }

  Status Run(const Args& args) const override {
    auto* scratch = reinterpret_cast<float*>(args.scratch);
    const float* packed = args.In<float>(1);
    Product p = product_;
    p.taps = taps_.data();
    p.a = args.In<float>(0);
    if (pads_) {
      FillPadded(args, scratch);
      p.a = scratch;
    }
    if (!packed_) {
      float* to = scratch + RoundedPadding();
      ParallelFor(args.threads, g_.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) PackGroup(args.In<float>(1), i, to);
      });
      packed = to;
    }
    p.epilogue = EpilogueOf(args, activation_);
    const Split split = SplitOf(p, g_.groups);
    ParallelFor(args.threads, g_.groups * split.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / split.tasks(), column = group * p.columns;
        Product part = p;
        part.a += group * (g_.in_channels / g_.groups);
        part.b = packed + group * packed_floats_;
        part.c = args.Out<float>(0) + column;
        if (part.epilogue.bias != nullptr) part.epilogue.bias += column;
        if (part.epilogue.residual != nullptr) part.epilogue.residual += column;
        RunTask(part, split, i % split.tasks());
      }
    });
    return Status();
  }

  // Packs one group of a filter[taps, in_group, out_channels].
  void PackGroup(const float* filter, int64_t group, float* to) const {
    Pack(filter + group * product_.columns, g_.out_channels, 1, product_.depth(), product_.columns,
         to + group * packed_floats_);
  }

 private:
  // The padded input ends at a multiple of 64 bytes, where the packed filter begins.
  int64_t RoundedPadding() const { return SaturatingAdd(padded_floats_, 15) / 16 * 16; }

  // The input with zeros around it.
  void FillPadded(const Args& args, float* to) const {
    const int64_t channels = g_.in_channels, row = size_[2] * channels;
    const WindowAxis &depth = g_.axis[0], &height = g_.axis[1], &width = g_.axis[2];
    const int64_t rows = g_.batch * size_[0] * size_[1];
    const int64_t left = size_[2] == width.in ? 0 : width.pad_begin * channels;
    const int64_t middle = std::min(width.in * channels, row - left);
    const int64_t grain = std::max<int64_t>(1, 32768 / row);
    ParallelFor(args.threads, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* at = to + i * row;
        const int64_t h = i % size_[1] - Before(1), d = i / size_[1] % size_[0] - Before(0);
        if (h < 0 || h >= height.in || d < 0 || d >= depth.in) {
          std::fill_n(at, row, 0.0f);
          continue;
        }
        const int64_t line = (i / size_[1] / size_[0] * depth.in + d) * height.in + h;
        std::fill_n(at, left, 0.0f);
        std::memcpy(at + left, args.In<float>(0) + line * width.in * channels,
                    static_cast<size_t>(middle) * sizeof(float));
        std::fill(at + left + middle, at + row, 0.0f);
      }
    });
  }
  int64_t Before(int axis) const { return g_.axis[static_cast<size_t>(axis)].pad_begin; }

  const WindowGeometry g_;
  const Activation activation_;
  const bool packed_;
  bool pads_ = false;
  int64_t size_[kMaxSpatial];  // of the input after padding
  std::vector<int64_t> taps_;
  Product product_;
  int64_t padded_floats_ = 0, packed_floats_ = 0;
};

// By the filter alone: one input channel per group, and one filter for each.
bool IsDepthwise(const ConvAttrs& attrs, const Shape& filter) {
  return attrs.groups > 1 && filter[filter.rank() - 2] == 1 && filter.back() == attrs.groups;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastConv(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, node));
  const TensorDesc filter = node.inputs[1].desc();
  if (filter.dtype != DType::kF32 || filter.elements() == 0 ||
      node.outputs[0].desc().elements() == 0) {
    return nullptr;
  }
  if (IsDepthwise(attrs, filter.shape)) {
    return std::unique_ptr<CpuKernel>(std::make_unique<DepthwiseConv>(node, g, activation));
  }
  return std::unique_ptr<CpuKernel>(
      std::make_unique<ProductConv>(node, g, activation, node.inputs[1].has_value()));
}

Result<Packing> ConvPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  const TensorDesc desc = fact.desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  if (input != 1 || desc.dtype != DType::kF32 || desc.elements() == 0 ||
      IsDepthwise(attrs, desc.shape)) {
    return Packing{"dense", desc.bytes(), nullptr};
  }
  const int64_t groups = attrs.groups, out_channels = desc.shape.back();
  const int64_t columns = out_channels / groups, depth = desc.elements() / out_channels;
  const int64_t floats = PackedFloats(depth, columns);
  return Packing{StrCat("panels", PanelColumns(), groups > 1 ? StrCat("g", groups) : ""),
                 SaturatingMul(4 * groups, floats),
                 [=](const Tensor& constant, std::span<std::byte> to) {
                   for (int64_t i = 0; i < groups; ++i) {
                     Pack(constant.As<float>().data() + i * columns, out_channels, 1, depth,
                          columns, reinterpret_cast<float*>(to.data()) + i * floats);
                   }
                   return Status();
                 }};
}

}  // namespace oncilla::cpu
