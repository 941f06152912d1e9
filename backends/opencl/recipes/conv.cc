// Recipes of convolutions: by panels or tiles, if the convolution is computed as a matrix product;
// by a depthwise kernel; and with one work-item per element for all others.
#include "engine/ops/nn/conv.h"

#include <algorithm>

#include "backends/opencl/recipes/choices.h"
#include "backends/opencl/recipes/columns.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/tiles.h"
#include "backends/opencl/recipes/window_args.h"
#include "backends/opencl/recipes/winograd.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

int64_t MostOf(const NodeView& node) {
  return std::max({node.inputs[0].desc().elements(), node.inputs[1].desc().elements(),
                   node.outputs[0].desc().elements()});
}

void AddChannels(const WindowGeometry& g, DispatchBuilder& b) {
  b.Int({{"channels", g.in_channels}, {"out_channels", g.out_channels}});
  b.Int({{"in_group", g.in_channels / g.groups}, {"out_group", g.out_channels / g.groups}});
}

// The two kernels of conv/direct.cl.
enum class DirectKernel { kConv, kTranspose };

// `run` is the number of rows of a convolution's filter for each tap.
Recipe Direct(DirectKernel kernel, const std::string& activation, const WindowGeometry& g,
              int64_t run, const NodeView& given, const Capabilities& caps) {
  // Only a convolution takes a fourth input, its residual.
  const bool conv = kernel == DirectKernel::kConv;
  NodeView node = given;
  node.inputs = given.inputs.first(std::min<size_t>(given.inputs.size(), conv ? 4 : 3));
  const DType dtype = node.inputs[0].dtype;
  const int64_t total = node.outputs[0].desc().elements();
  const IndexType index(std::max(MostOf(node), g.taps() * run * g.out_channels));
  DispatchBuilder b(cl::kConvDirect, conv ? "conv" : "transpose", index);
  b.Define({{"T", TypeName(dtype)}, {"WIDE", SumType(dtype)}, {"IDX", index.name()}});
  b.Arg("x", In{0}).Arg("filter", In{1});
  AddEpilogue(node, activation, b);
  b.Arg("y", Out{0}).Index("total", total);
  AddChannels(g, b);
  if (conv) b.Int("run", run);
  AddWindow(g, b);
  b.Items(total, caps.Group(TuningOf(caps).loop_group));
  return b.Loop(std::max(g.in_channels / g.groups, LongestAxis(g))).Alone();
}

// The division of a depthwise convolution: pixels along a row for each work-item, and work-items of
// a group along channels.
struct DepthwisePlan {
  int64_t stretch, group;
  std::string name() const { return StrCat("STRETCH=", stretch, " GROUP=", group); }
};
DepthwisePlan ChooseDepthwise(const WindowGeometry& g, int64_t vectors, int64_t pixels,
                              const NodeView& node, const std::string& activation,
                              const Capabilities& caps, Decision& decision) {
  const Tuning& tuning = TuningOf(caps);
  const int64_t width = g.axis[2].out;
  const int64_t most =
      vectors >= tuning.depthwise_many ? tuning.depthwise_group : tuning.depthwise_small_group;
  const auto all = [&] {
    std::vector<DepthwisePlan> plans;
    for (int64_t group = 1; group <= caps.Group(2 * tuning.depthwise_group); group *= 2) {
      if (group > 1 && (tuning.depthwise_rows || group < 8 || group >= 2 * vectors)) continue;
      for (int64_t stretch = pixels;; stretch *= 2) {
        plans.push_back({std::min(stretch, width), group});
        if (stretch >= width) break;
      }
    }
    return plans;
  };
  const std::string sizes = StrCat(g.batch * g.axis[0].out * g.axis[1].out, "x", width, "x",
                                   g.in_channels, " ", WindowText(g));
  const DepthwisePlan generic = {tuning.depthwise_rows ? width : pixels, caps.Group(most)};
  return Choose(LayerName("depthwise", sizes, node, activation), generic, all, caps, decision);
}

Recipe Depthwise(const ConvAttrs& attrs, const WindowGeometry& g, const NodeView& node,
                 const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  int64_t vector = tuning.panels ? PanelOf(caps).vector : 4;
  while (g.in_channels % vector != 0) vector = vector == 4 ? 1 : vector / 2;
  const int64_t width = g.axis[2].out, pixels = std::min(width, tuning.depthwise_pixels);
  const int64_t vectors = g.in_channels / vector;
  Recipe recipe;
  const auto [stretch, group] =
      ChooseDepthwise(g, vectors, pixels, node, attrs.activation, caps, recipe.decision);
  DispatchBuilder b(cl::kConvDepthwise, "depthwise");
  b.Define({{"VEC", StrCat(vector)},
            {"PIXELS", StrCat(pixels)},
            {"IDX", IndexType(MostOf(node)).name()}});
  AddStored(node.inputs[1].dtype, b);
  const WindowAxis& along = g.axis[2];
  const bool shares = (along.kernel == 3 || along.kernel == 5) && along.stride <= 2 &&
                      along.dilation == 1 && pixels == tuning.depthwise_pixels;
  if (shares) b.Define({{"WIDTH", StrCat(along.kernel)}, {"STEP", StrCat(along.stride)}});
  b.Arg("x", In{0}).Arg("filter", In{1});
  AddEpilogue(node, attrs.activation, b);
  b.Arg("y", Out{0}).Int({{"channels", g.in_channels}, {"stretch", stretch}});
  AddWindow(g, b);
  b.Groups(
      {DivideUp(vectors, group), DivideUp(width, stretch), g.batch * g.axis[0].out * g.axis[1].out},
      {group, 1, 1});
  b.Loop(std::max(DivideUp(stretch, pixels), LongestAxis(g))).AddTo(recipe);
  return recipe;
}

Recipe Panels(const ConvAttrs& attrs, const WindowGeometry& g, bool packed, const NodeView& node,
              const Capabilities& caps) {
  const ConvProduct p = ProductOf(g);
  const int64_t elements = PackedElements(p.depth(), p.columns, caps);
  Recipe recipe;
  const DType dtype = node.inputs[1].dtype;
  const int64_t bytes = BytesOf(dtype);
  Arg a = In{0}, b = In{1};
  if (p.pads) {
    a = recipe.AddScratch(p.in_floats * bytes, caps);
    recipe.dispatches.push_back(PadInput(g, p, dtype, a));
  }
  if (!packed) {
    b = recipe.AddScratch(g.groups * elements * bytes, caps);
    recipe.dispatches.push_back(MakePack(
        In{1}, b, dtype, {g.groups, p.columns, g.out_channels, 1, p.depth(), p.columns}, caps));
  }
  PanelLaunch launch = PanelsOf(g, p, elements);
  launch.most = std::max({MostOf(node), p.in_floats, g.groups * elements});
  AddPanels(launch, a, b, node, attrs.activation, caps, recipe);
  return recipe;
}

// Depends on the filter alone: one input channel per group, and one filter for each.
bool IsDepthwise(const ConvAttrs& attrs, const TensorDesc& filter) {
  return attrs.groups > 1 && filter.shape[filter.rank() - 2] == 1 &&
         filter.shape.back() == attrs.groups;
}

// Depends on the filter alone, so that it can be packed before other sizes are known.
bool TakesPanels(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps) {
  return TuningOf(caps).panels && IsCarried(filter.dtype) && filter.elements() > 0 &&
         attrs.groups <= kMostGroups && filter.shape.back() <= kMostGroups &&
         !IsDepthwise(attrs, filter);
}

// The same for tiles. It must not depend on anything that changes if Device::Prepare tries again
// with smaller groups. If no tile fits in the end, Direct reads the filter as it was packed.
bool TakesTiles(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  return !tuning.panels && caps.local_groups && IsCarried(filter.dtype) && filter.elements() > 0 &&
         attrs.groups <= kMostGroups / tuning.most_parts && !IsDepthwise(attrs, filter) &&
         filter.shape.back() / attrs.groups >= tuning.tile_least_columns;
}
int64_t TapsOf(const TensorDesc& filter) { return filter.shape.Product(0, filter.rank() - 2); }

Recipe Tiled(const ConvAttrs& attrs, const WindowGeometry& g, const NodeView& node,
             const Capabilities& caps) {
  if (TakesRegisters(SizesOf(g, node.inputs[0].dtype), caps)) {
    if (IsProduct(g)) {
      return RegisterMatMul(attrs.activation, ProductGeometry(g), node, MostOf(node), caps);
    }
    return RegisterConv(attrs.activation, g, node.inputs[1].constant, node, caps);
  }
  if (!IsProduct(g)) {
    return PlannedConv(attrs.activation, g, node.inputs[1].constant, node, caps);
  }
  return PlannedMatMul(attrs.activation, ProductGeometry(g), node, MostOf(node), caps);
}

// Packs a filter for TiledConv.
Packing RunsOfFour(const TensorDesc& filter) {
  const int64_t columns = filter.shape.back(), taps = TapsOf(filter);
  const int64_t channels = filter.shape[filter.rank() - 2], run = ChannelRun(channels, taps);
  if (run == channels) return {"dense", filter.bytes(), nullptr};
  const int64_t row = columns * BytesOf(filter.dtype);
  const auto pack = [=](const Tensor& constant, std::span<std::byte> to) {
    const std::span<const std::byte> from = constant.bytes();
    std::ranges::fill(to, std::byte{0});
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::ranges::copy(from.subspan(static_cast<size_t>(tap * channels * row),
                                     static_cast<size_t>(channels * row)),
                        to.begin() + tap * run * row);
    }
    return Status();
  };
  return {"runs4", taps * run * row, pack};
}

// Packs a filter for direct convolutions.
Packing DirectFilter(const ConvAttrs& attrs, const TensorDesc& desc, const Capabilities& caps) {
  if (TakesTiles(attrs, desc, caps)) return RunsOfFour(desc);
  if (!TakesPanels(attrs, desc, caps)) return {"dense", desc.bytes(), nullptr};
  const int64_t out_channels = desc.shape.back(), columns = out_channels / attrs.groups;
  const PackSource source{attrs.groups, columns, out_channels, 1, desc.elements() / out_channels,
                          columns};
  return PackedPanels(desc, source, attrs.groups > 1 ? StrCat("g", attrs.groups) : "", caps);
}

Result<Packing> PackFilter(const ConvAttrs& attrs, const NodeView& node, int input,
                           const Capabilities& caps) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  if (input != 1) return Packing{"dense", desc.bytes(), nullptr};
  const Packing direct = DirectFilter(attrs, desc, caps);
  const int tile = WinogradTileFor(attrs, desc, caps);
  return tile == 0 ? direct : WithTransforms(direct, tile, desc, caps);
}

Result<Recipe> DirectConv(const ConvAttrs& attrs, const WindowGeometry& g, const NodeView& node,
                          const Capabilities& caps) {
  const TensorDesc filter = node.inputs[1].desc();
  const DType dtype = filter.dtype;
  const bool empty = node.inputs[0].desc().elements() == 0 || filter.elements() == 0;
  if (!empty && TakesPanels(attrs, filter, caps)) {
    return Panels(attrs, g, node.inputs[1].constant, node, caps);
  }
  // An image of one pixel or a few, as in the gates of channels (squeeze and excitation).
  if (!empty && IsProduct(g) && TakesColumns(ProductGeometry(g), dtype, caps)) {
    return ColumnsMatMul(attrs.activation, ProductGeometry(g), node, MostOf(node), caps);
  }
  const bool tiles = TakesTiles(attrs, filter, caps);
  if (tiles && (HasTiles(caps) || TakesRegisters(SizesOf(g, node.inputs[0].dtype), caps))) {
    return Tiled(attrs, g, node, caps);
  }
  if (!empty && IsCarried(dtype) && IsDepthwise(attrs, filter) && g.axis[2].out / 4 < kMostGroups &&
      g.batch * g.axis[0].out * g.axis[1].out <= kMostGroups) {
    return Depthwise(attrs, g, node, caps);
  }
  const int64_t channels = g.in_channels / g.groups;
  const bool packed = tiles && node.inputs[1].constant;
  return Direct(DirectKernel::kConv, attrs.activation, g,
                packed ? ChannelRun(channels, g.taps()) : channels, node, caps);
}

Result<Recipe> Conv(const ConvAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, node));
  ONCILLA_TRY(CheckSizes(g));
  if (node.outputs[0].desc().elements() == 0) return Recipe();
  const TensorDesc filter = node.inputs[1].desc();
  const int tile = node.inputs[1].constant ? WinogradTileFor(attrs, filter, caps) : 0;
  if (tile == 0) return DirectConv(attrs, g, node, caps);
  const int64_t direct_bytes = DirectFilter(attrs, filter, caps).bytes;
  if (node.inputs[0].desc().elements() > 0 && WinogradPays(g, tile, caps)) {
    return WinogradConv(attrs.activation, g, tile, direct_bytes, node, caps);
  }
  ONCILLA_ASSIGN(Recipe recipe, DirectConv(attrs, g, node, caps));
  for (Dispatch& d : recipe.dispatches) {
    for (Arg& arg : d.args) {
      if (In* in = std::get_if<In>(&arg); in != nullptr && in->index == 1) in->bytes = direct_bytes;
    }
  }
  return recipe;
}

Result<Recipe> ConvTranspose(const ConvTransposeAttrs& attrs, const NodeView& node,
                             const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvTransposeGeometry(attrs, node));
  ONCILLA_TRY(CheckSizes(g));
  if (node.outputs[0].desc().elements() == 0) return Recipe();
  return Direct(DirectKernel::kTranspose, "none", g, 0, node, caps);
}

const KernelRow kRows[] = {
    Row<Conv>("Conv", kFloats).Packs<PackFilter>(),
    Row<ConvTranspose>("ConvTranspose", kFloats),
};

}  // namespace

std::span<const KernelRow> ConvKernels() { return kRows; }

}  // namespace oncilla::opencl
