// The fast Conv for float and 16-bit floats. It is one matrix product per group over an input that
// is padded once; or Winograd's algorithm; or a kernel for groups of few channels, or for few
// output channels; or a depthwise kernel.
//
// engine/ops/nn/conv_product.h explains how a convolution becomes a product; a 1x1 one is a plain
// product.
#include <algorithm>
#include <atomic>
#include <optional>

#include "backends/cpu/conv/conv_parts.h"
#include "backends/cpu/conv/depthwise.h"
#include "backends/cpu/conv/few_outputs.h"
#include "backends/cpu/conv/fused_convs.h"
#include "backends/cpu/conv/grouped.h"
#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/packed_form.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/shares_scratch.h"
#include "engine/ops/nn/fused_conv.h"

namespace oncilla::cpu {
namespace {

template <class T>
Epilogue<T> EpilogueOf(const Args& args, Activation activation) {
  return {args.has_input(2) ? args.In<T>(2) : nullptr, args.has_input(3) ? args.In<T>(3) : nullptr,
          activation};
}

template <class T>
class DepthwiseConv : public CpuKernel {
 public:
  DepthwiseConv(const NodeView& node, const WindowGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {}
  std::string description() const override {
    const WindowAxis &height = g_.axis[1], &width = g_.axis[2];
    return StrCat("depthwise", Stored<T>(), " ", height.kernel, 'x', width.kernel, " step ",
                  height.stride, 'x', width.stride);
  }

  Status Run(const Args& args) const override {
    RunDepthwise(args.threads, Depthwise<T>{g_, args.In<T>(0), args.In<T>(1), args.Out<T>(0),
                                            EpilogueOf<T>(args, activation_)});
    return Status();
  }

 private:
  const WindowGeometry g_;
  const Activation activation_;
};

class GroupedConv : public CpuKernel {
 public:
  GroupedConv(const NodeView& node, const WindowGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {}
  std::string description() const override {
    const WindowAxis &height = g_.axis[1], &width = g_.axis[2];
    return StrCat("groups of ", g_.in_channels / g_.groups, " to ", g_.out_channels / g_.groups,
                  " ", height.kernel, 'x', width.kernel, " step ", height.stride, 'x',
                  width.stride);
  }

  Status Run(const Args& args) const override {
    RunGrouped(args.threads, Grouped{g_, args.In<float>(0), args.In<float>(1), args.Out<float>(0),
                                     EpilogueOf<float>(args, activation_)});
    return Status();
  }

 private:
  const WindowGeometry g_;
  const Activation activation_;
};

class FewOutputsConv : public CpuKernel, public SharesScratch {
 public:
  FewOutputsConv(const NodeView& node, const WindowGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), few_(g), activation_(activation) {}
  int64_t scratch_bytes() const override {
    return int64_t{sizeof(float)} * workers() * few_.scratch_floats();
  }
  std::string description() const override {
    const WindowAxis &height = g_.axis[1], &width = g_.axis[2];
    return StrCat("few outputs ", g_.in_channels, " to ", g_.out_channels,
                  g_.groups > 1 ? " depthwise " : " ", height.kernel, 'x', width.kernel,
                  ", strips of ", few_.strip);
  }

  Status Run(const Args& args) const override {
    RunFewOutputs(args.threads,
                  Grouped{g_, args.In<float>(0), args.In<float>(1), args.Out<float>(0),
                          EpilogueOf<float>(args, activation_)},
                  few_, reinterpret_cast<float*>(args.scratch));
    return Status();
  }

 private:
  const WindowGeometry g_;
  const FewOutputs few_;
  const Activation activation_;
};

// T is the type of the tensors, Packed that of the packed filter's elements.
template <class T, class Packed = T>
class ProductConv : public CpuKernel {
 public:
  ProductConv(const NodeView& node, const WindowGeometry& g, Activation activation, bool packed)
      : CpuKernel(node),
        g_(g),
        parts_(g),
        activation_(activation),
        packed_(packed),
        packed_elements_(PackedCount<Packed>(parts_.sizes.depth(), parts_.sizes.columns)) {}

  int64_t scratch_bytes() const override {
    const int64_t filter = packed_ ? 0 : SaturatingMul(g_.groups, packed_elements_);
    return SaturatingAdd(SaturatingMul(sizeof(T), RoundedPadding()),
                         SaturatingMul(sizeof(Packed), filter));
  }
  std::string description() const override {
    return StrCat("gemm ", TileNameOf<Packed>(), Stored<T>(), packed_ ? " packed" : " packs",
                  parts_.shape.pads ? " pads" : "", " ", parts_.sizes.rows(), 'x',
                  parts_.sizes.columns, 'x', parts_.sizes.depth(),
                  g_.groups > 1 ? StrCat(" in ", g_.groups, " groups") : "");
  }

  Status Run(const Args& args) const override {
    if (packed_) return RunPacked(args, args.In<Packed>(1));
    auto* to = reinterpret_cast<Packed*>(reinterpret_cast<T*>(args.scratch) + RoundedPadding());
    ParallelFor(args.threads, g_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) PackGroup(args.In<T>(1), i, to);
    });
    return RunPacked(args, to);
  }

  // Runs with a filter that is packed in panels.
  Status RunPacked(const Args& args, const Packed* packed) const {
    auto* scratch = reinterpret_cast<T*>(args.scratch);
    Product<T, Packed> p = parts_.product<T, Packed>();
    if (parts_.seen.has_value()) p.seen = &*parts_.seen;
    p.a = args.In<T>(0);
    if (parts_.shape.pads) {
      FillPadded(args.threads, g_, parts_.shape, p.a, scratch);
      p.a = scratch;
    }
    p.epilogue = EpilogueOf<T>(args, activation_);
    const Split split = SplitOf(p, g_.groups);
    ParallelFor(args.threads, g_.groups * split.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / split.tasks(), column = group * p.columns;
        Product<T, Packed> part = p;
        part.a += group * (g_.in_channels / g_.groups);
        part.b = packed + group * packed_elements_;
        part.c = args.Out<T>(0) + column;
        if (part.epilogue.bias != nullptr) part.epilogue.bias += column;
        if (part.epilogue.residual != nullptr) part.epilogue.residual += column;
        RunTask(part, split, i % split.tasks());
      }
    });
    return Status();
  }

  // Packs one group of a filter[taps, in_group, out_channels].
  void PackGroup(const T* filter, int64_t group, Packed* to) const {
    Pack(Threads(), filter + group * parts_.sizes.columns, g_.out_channels, 1, parts_.sizes.depth(),
         parts_.sizes.columns, to + group * packed_elements_);
  }

 private:
  // The padded input ends at a multiple of 64 bytes, where the packed filter begins.
  int64_t RoundedPadding() const { return WholeLines<T>(parts_.padded_elements()); }

  const WindowGeometry g_;
  const ConvParts parts_;
  const Activation activation_;
  const bool packed_;
  const int64_t packed_elements_;
};

// A pointwise convolution as a product, in which the channels of each pixel are multiplied by their
// sample's gate as they are read.
class GatedProduct : public CpuKernel {
 public:
  GatedProduct(const NodeView& node, const WindowGeometry& g, Activation activation)
      : CpuKernel(node), g_(g), activation_(activation) {
    g_.batch = 1;
    parts_.emplace(g_);
    batch_ = g.batch;
  }

  std::string description() const override {
    const ProductSizes& sizes = parts_->sizes;
    return StrCat("gemm ", TileName(), " packed gated ", batch_ * sizes.rows(), 'x', sizes.columns,
                  'x', sizes.depth());
  }

  Status Run(const Args& args) const override {
    using In = GatedConvInput;
    Product<float> all = parts_->product<float>();
    all.b = args.In<float>(In::kFilter);
    all.epilogue.bias = args.has_input(In::kBias) ? args.In<float>(In::kBias) : nullptr;
    all.epilogue.activation = activation_;
    const Split split = SplitOf(all, batch_);
    const int64_t in = g_.in_pixels() * g_.in_channels, out = g_.out_pixels() * g_.out_channels;
    ParallelFor(args.threads, batch_ * split.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t sample = i / split.tasks();
        Product<float> p = all;
        p.a = args.In<float>(In::kX) + sample * in;
        p.gate = args.In<float>(In::kGate) + sample * g_.in_channels;
        p.c = args.Out<float>(0) + sample * out;
        if (args.has_input(In::kResidual)) {
          p.epilogue.residual = args.In<float>(In::kResidual) + sample * out;
        }
        RunTask(p, split, i % split.tasks());
      }
    });
    return Status();
  }

 private:
  WindowGeometry g_;  // of a sample
  std::optional<ConvParts> parts_;
  const Activation activation_;
  int64_t batch_ = 1;
};

// Winograd's algorithm, with a filter that was transformed when it was packed. If the filter could
// not be transformed, it was packed for the product instead, which is used then.
class WinogradConv : public CpuKernel {
 public:
  WinogradConv(const NodeView& node, const WindowGeometry& g, Activation activation, int tile)
      : CpuKernel(node),
        winograd_(g, tile),
        activation_(activation),
        direct_(node, g, activation, true),
        runs_direct_(!Winograd::Pays(node.inputs[1].desc().shape, node.outputs[0].shape)) {}

  int64_t scratch_bytes() const override {
    return std::max(winograd_.scratch_bytes(), direct_.scratch_bytes());
  }
  std::string description() const override {
    if (runs_direct_.load(std::memory_order_relaxed)) return direct_.description();
    const int tile = winograd_.filter().tile();
    return StrCat("winograd ", tile, 'x', tile, ' ', TileName(), " packed ", winograd_.tiles(),
                  " tiles, ", winograd_.block_tiles(), " at a time");
  }

  Status Run(const Args& args) const override {
    const float* panels = WinogradFilter::DirectPanels(args.In<float>(1));
    runs_direct_.store(panels != nullptr, std::memory_order_relaxed);
    if (panels != nullptr) return direct_.RunPacked(args, panels);
    winograd_.Run(args.threads, args.In<float>(0), args.In<float>(1), args.Out<float>(0),
                  EpilogueOf<float>(args, activation_), reinterpret_cast<float*>(args.scratch));
    return Status();
  }

 private:
  const Winograd winograd_;
  const Activation activation_;
  const ProductConv<float> direct_;
  // Whether the packed filter is that of the product. Only the filter itself can tell: until the
  // first run has seen it, this is the result of the rule by which filters are packed. It is used
  // only for descriptions.
  mutable std::atomic<bool> runs_direct_;
};

// Depends on the filter alone: one input channel per group, and one filter for each.
bool IsDepthwise(const ConvAttrs& attrs, const Shape& filter) {
  return attrs.groups > 1 && filter[filter.rank() - 2] == 1 && filter.back() == attrs.groups;
}

// Depends on the filter alone: several groups of few channels.
bool HasNarrowGroups(const ConvAttrs& attrs, const TensorDesc& filter) {
  return attrs.groups > 1 && filter.dtype == DType::kF32 &&
         AreNarrowGroups(filter.shape[filter.rank() - 2], filter.shape.back() / attrs.groups);
}

// Depends on attributes and the filter alone.
bool GivesFewOutputs(const ConvAttrs& attrs, const TensorDesc& filter) {
  if (filter.dtype != DType::kF32) return false;
  const auto windows = MakeWindowSpec(filter.shape.rank() - 2, attrs.strides, attrs.dilations,
                                      attrs.pads, attrs.auto_pad);
  return windows.ok() && HasFewOutputs(filter.shape, *windows, attrs.groups);
}

// Where rows have one pixel, the pixels of a column lie as those of a row would. As a row, the
// windows of neighbours share what they read.
WindowGeometry WithRows(WindowGeometry g) {
  const auto single = [](const WindowAxis& a) {
    return a.in == 1 && a.out == 1 && a.kernel == 1 && a.pad_begin == 0;
  };
  for (int moved = 0; moved < 2 && single(g.axis[2]); ++moved) {
    g.axis = {WindowAxis(), g.axis[0], g.axis[1]};
  }
  return g;
}

template <class T, class Packed>
Result<std::unique_ptr<CpuKernel>> MakeConvOf(const NodeView& node, const ConvAttrs& attrs,
                                              Activation activation) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, node));
  if constexpr (std::is_same_v<T, float>) {
    if (GivesFewOutputs(attrs, node.inputs[1].desc())) {
      return std::unique_ptr<CpuKernel>(std::make_unique<FewOutputsConv>(node, g, activation));
    }
  }
  if (IsDepthwise(attrs, node.inputs[1].desc().shape)) {
    return std::unique_ptr<CpuKernel>(std::make_unique<DepthwiseConv<T>>(node, g, activation));
  }
  const bool packed = node.inputs[1].constant;
  if constexpr (std::is_same_v<T, float>) {
    if (HasNarrowGroups(attrs, node.inputs[1].desc())) {
      return std::unique_ptr<CpuKernel>(std::make_unique<GroupedConv>(node, g, activation));
    }
    const int tile = Winograd::TileFor(attrs, node.inputs[1].desc().shape);
    if (packed && tile != 0) {
      return std::unique_ptr<CpuKernel>(std::make_unique<WinogradConv>(node, g, activation, tile));
    }
  }
  return std::unique_ptr<CpuKernel>(
      std::make_unique<ProductConv<T, Packed>>(node, WithRows(g), activation, packed));
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastConv(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  const TensorDesc filter = node.inputs[1].desc();
  if (filter.elements() == 0 || node.outputs[0].desc().elements() == 0) return nullptr;
  if (!IsCarried(filter.dtype)) return nullptr;
  return WithPackedForm(filter.dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
    return MakeConvOf<T, Packed>(node, attrs, activation);
  });
}

Result<CpuPacking> ConvPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  const TensorDesc desc = fact.desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  if (input != 1 || !IsCarried(desc.dtype) || desc.elements() == 0 ||
      IsDepthwise(attrs, desc.shape) || HasNarrowGroups(attrs, desc) ||
      GivesFewOutputs(attrs, desc)) {
    return CpuPacking{"dense", desc.bytes(), nullptr};
  }
  if (const int tile = Winograd::TileFor(attrs, desc.shape);
      desc.dtype == DType::kF32 && tile != 0) {
    const WinogradFilter filter(tile, desc.shape[2], desc.shape[3]);
    // It does not matter here if sizes become known only later, since the packed filter states its
    // form.
    const bool transformed = Winograd::Pays(desc.shape, node.outputs[0].shape);
    return CpuPacking{StrCat("winograd", tile, "p", PanelColumns(), transformed ? "" : " direct"),
                      filter.packed_bytes(transformed),
                      [=](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
                        filter.Pack(threads, constant.As<float>().data(), transformed, to);
                        return Status();
                      }};
  }
  return PanelPacking(desc, attrs.groups);
}

CpuPacking PanelPacking(const TensorDesc& filter, int64_t groups) {
  const int64_t out_channels = filter.shape.back();
  const int64_t columns = out_channels / groups, depth = filter.elements() / out_channels;
  return WithPackedForm(filter.dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
    const int64_t elements = PackedCount<Packed>(depth, columns);
    return CpuPacking{
        StrCat(PackedName<Packed>(), PanelColumns(), groups > 1 ? StrCat("g", groups) : ""),
        SaturatingMul(SaturatingMul(int64_t{sizeof(Packed)}, groups), elements),
        [=](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
          for (int64_t i = 0; i < groups; ++i) {
            Pack(threads, constant.As<T>().data() + i * columns, out_channels, 1, depth, columns,
                 reinterpret_cast<Packed*>(to.data()) + i * elements);
          }
          return Status();
        }};
  });
}

// Depends on attributes and the filter alone, as packings must: a pointwise convolution in f32
// without padding.
static bool IsGatedProduct(const ConvAttrs& attrs, const Fact& filter) {
  const auto none = [](int64_t pad) { return pad == 0; };
  const Shape shape = filter.shape.ToShape();
  return filter.constant && filter.dtype == DType::kF32 && attrs.groups == 1 &&
         shape.elements() > 0 &&
         std::all_of(shape.begin(), shape.end() - 2, [](int64_t size) { return size == 1; }) &&
         std::ranges::all_of(attrs.pads, none);
}

Result<std::unique_ptr<CpuKernel>> MakeFastGatedConv(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  if (node.outputs[0].desc().elements() == 0 ||
      !IsGatedProduct(attrs, node.inputs[GatedConvInput::kFilter])) {
    return nullptr;
  }
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, node));
  return std::unique_ptr<CpuKernel>(std::make_unique<GatedProduct>(node, g, activation));
}

Result<CpuPacking> GatedConvPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvAttrs>(*node.attrs));
  if (input != GatedConvInput::kFilter || !IsGatedProduct(attrs, fact)) {
    return CpuPacking{"dense", fact.desc().bytes(), nullptr};
  }
  return PanelPacking(fact.desc());
}

}  // namespace oncilla::cpu
