// Recipes of convolutions: panels or tiles (a convolution as a matrix product), depthwise, and one
// work-item per element for whatever these do not take.
#include <algorithm>

#include "backends/opencl/kernels.h"
#include "backends/opencl/matmul_recipe.h"
#include "backends/opencl/window_args.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/conv.h"

namespace oncilla::opencl {
namespace {

// Some drivers count groups beyond the first axis in 16 bits.
constexpr int64_t kMostGroups = 65535;

int64_t MostOf(const NodeView& node) {
  return std::max({node.inputs[0].desc().elements(), node.inputs[1].desc().elements(),
                   node.outputs[0].desc().elements()});
}

Status CheckSizes(const WindowGeometry& g) {
  if (FitsInt(g)) return Status();
  return Unsupported("opencl: windows over more than 2^29 places");
}

// Both convolutions of conv/direct.cl.
Recipe Direct(const char* entry, const std::string& activation, const WindowGeometry& g,
              const NodeView& node, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  const int64_t total = node.outputs[0].desc().elements(), group = caps.Group(64);
  Dispatch d{.source = &cl::kConvDirect, .entry = entry};
  const std::string type = IndexType(MostOf(node));
  d.defines = {{"T", std::string(Name(dtype))}, {"WIDE", SumType(dtype)}, {"IDX", type}};
  d.args = {In{0}, In{1}};
  AddEpilogue({node.op, node.attrs,
               node.inputs.first(std::min<size_t>(node.inputs.size(), entry[0] == 'c' ? 4 : 3)),
               node.outputs, node.name},
              activation, d);
  d.args.push_back(Out{0});
  d.args.push_back(Index(total, type == "long"));
  for (const int64_t v :
       {g.in_channels, g.out_channels, g.in_channels / g.groups, g.out_channels / g.groups}) {
    d.args.push_back(static_cast<int32_t>(v));
  }
  AddWindow(g, d);
  d.global = {RoundUp(total, group), 1, 1};
  d.local = {group, 1, 1};
  d.longest_loop =
      std::max({g.in_channels / g.groups, g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel});
  return Recipe{{std::move(d)}};
}

Recipe Tiled(const ConvAttrs& attrs, const WindowGeometry& g, const TileChoice& tile,
             const NodeView& node) {
  const int64_t rows = g.batch * g.out_pixels(), out_group = g.out_channels / g.groups;
  const int64_t depth = g.taps() * g.in_channels / g.groups;
  Dispatch d{.source = &cl::kConvTiled, .entry = "tiled"};
  const std::string type = IndexType(MostOf(node));
  d.defines = {{"T", std::string(Name(node.inputs[0].dtype))}, {"IDX", type}};
  d.args = {In{0}, In{1}};
  AddEpilogue(node, attrs.activation, d);
  d.args.push_back(Out{0});
  AddTile(tile, d);
  d.args.push_back(Index(rows, type == "long"));
  for (const int64_t v :
       {depth, g.in_channels, g.out_channels, g.in_channels / g.groups, out_group}) {
    d.args.push_back(static_cast<int32_t>(v));
  }
  AddWindow(g, d);
  d.global = {DivideUp(rows, tile.rows()) * tile.threads_x,
              DivideUp(out_group, tile.columns()) * tile.threads_y, g.groups};
  d.longest_loop = std::max(DivideUp(depth, tile.slice), tile.rows());
  return Recipe{{std::move(d)}};
}

Recipe Depthwise(const ConvAttrs& attrs, const WindowGeometry& g, const NodeView& node,
                 const Capabilities& caps) {
  const bool cpu = caps.shape == KernelShape::kCpu;
  int64_t vector = cpu ? PanelVector(caps) : 4;
  while (g.in_channels % vector != 0) vector = vector == 4 ? 1 : vector / 2;
  const int64_t width = g.axis[2].out, pixels = std::min<int64_t>(width, 4);
  // A core takes a whole row; a GPU wants many small pieces.
  const int64_t stretch = cpu ? width : pixels;
  const int64_t group = cpu ? 1 : caps.Group(g.in_channels / vector >= 32 ? 64 : 16);
  Dispatch d{.source = &cl::kConvDepthwise, .entry = "depthwise"};
  d.defines = {
      {"VEC", StrCat(vector)}, {"PIXELS", StrCat(pixels)}, {"IDX", IndexType(MostOf(node))}};
  AddStored(node.inputs[1].dtype, d);
  d.args = {In{0}, In{1}};
  AddEpilogue(node, attrs.activation, d);
  d.args.push_back(Out{0});
  d.args.push_back(static_cast<int32_t>(g.in_channels));
  d.args.push_back(static_cast<int32_t>(stretch));
  AddWindow(g, d);
  d.global = {RoundUp(g.in_channels / vector, group), DivideUp(width, stretch),
              g.batch * g.axis[0].out * g.axis[1].out};
  d.local = {group, 1, 1};
  d.longest_loop =
      std::max({DivideUp(stretch, pixels), g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel});
  return Recipe{{std::move(d)}};
}

Recipe Panels(const ConvAttrs& attrs, const WindowGeometry& g, bool packed, const NodeView& node,
              const Capabilities& caps) {
  PanelLaunch launch;
  launch.shape = ProductOf(g);
  const ConvProduct& p = launch.shape;
  const int64_t elements = PackedElements(p.depth(), p.columns, caps);
  Recipe recipe;
  const DType dtype = node.inputs[1].dtype;
  const int64_t bytes = BytesOf(dtype);
  Arg a = In{0}, b = In{1};
  if (p.pads) {
    a = recipe.AddScratch(p.in_floats * bytes, caps);
    Dispatch d{.source = &cl::kConvPad, .entry = "pad"};
    d.defines = {{"IDX", IndexType(p.in_floats)}};
    AddStored(dtype, d);
    d.args = {In{0}, a, static_cast<int32_t>(g.in_channels)};
    for (const WindowAxis& axis : g.axis) d.args.push_back(static_cast<int32_t>(axis.in));
    for (const int64_t v : p.size) d.args.push_back(static_cast<int32_t>(v));
    for (const int64_t v : p.before) d.args.push_back(static_cast<int32_t>(v));
    d.global = {g.batch * p.size[0] * p.size[1], 1, 1};
    d.longest_loop = p.size[2] * g.in_channels;
    recipe.dispatches.push_back(std::move(d));
  }
  if (!packed) {
    b = recipe.AddScratch(g.groups * elements * bytes, caps);
    recipe.dispatches.push_back(MakePack(In{1}, b, dtype, g.groups, p.columns, g.out_channels, 1,
                                         p.depth(), p.columns, caps));
  }
  launch.row_y = g.out_channels;
  launch.y_step = launch.bias_step = p.columns;
  if (g.groups > 1) launch.batch.axes = {{g.groups, g.in_channels / g.groups, elements}};
  launch.products = g.groups;
  launch.most = std::max({MostOf(node), p.in_floats, g.groups * elements});
  recipe.dispatches.push_back(MakePanels(launch, a, b, node, attrs.activation, caps));
  return recipe;
}

// By the filter alone: one input channel per group, and one filter for each.
bool IsDepthwise(const ConvAttrs& attrs, const TensorDesc& filter) {
  return attrs.groups > 1 && filter.shape[filter.rank() - 2] == 1 &&
         filter.shape.back() == attrs.groups;
}

// By the filter alone, so that it can be packed before other sizes are known.
bool TakesPanels(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps) {
  return caps.shape == KernelShape::kCpu && IsCarried(filter.dtype) && filter.elements() > 0 &&
         attrs.groups <= kMostGroups && filter.shape.back() <= kMostGroups &&
         !IsDepthwise(attrs, filter);
}

Result<Recipe> Conv(const ConvAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(attrs, node));
  ONCILLA_TRY(CheckSizes(g));
  if (node.outputs[0].desc().elements() == 0) return Recipe();
  const TensorDesc filter = node.inputs[1].desc();
  const DType dtype = filter.dtype;
  const bool empty = node.inputs[0].desc().elements() == 0 || filter.elements() == 0;
  if (!empty && TakesPanels(attrs, filter, caps)) {
    return Panels(attrs, g, node.inputs[1].constant, node, caps);
  }
  if (!empty && IsCarried(dtype) && IsDepthwise(attrs, filter) && g.axis[2].out / 4 < kMostGroups &&
      g.batch * g.axis[0].out * g.axis[1].out <= kMostGroups) {
    return Depthwise(attrs, g, node, caps);
  }
  const int64_t out_group = g.out_channels / g.groups;
  const TileChoice tile = ChooseTile(g.batch * g.out_pixels(), out_group, g.groups, caps);
  if (!empty && dtype != DType::kF64 && caps.shape == KernelShape::kGpu && caps.local_groups &&
      tile.threads_x > 0 && out_group >= 8 && out_group / 4 <= kMostGroups &&
      g.groups <= kMostGroups) {
    return Tiled(attrs, g, tile, node);
  }
  return Direct("conv", attrs.activation, g, node, caps);
}

Result<Packing> PackFilter(const ConvAttrs& attrs, const NodeView& node, int input,
                           const Capabilities& caps) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  if (input != 1 || !TakesPanels(attrs, desc, caps)) {
    return Packing{"dense", desc.bytes(), nullptr};
  }
  const int64_t groups = attrs.groups, out_channels = desc.shape.back();
  const int64_t columns = out_channels / groups, depth = desc.elements() / out_channels;
  const int64_t elements = PackedElements(depth, columns, caps), width = PanelColumns(caps);
  return Packing{StrCat("panels", width, groups > 1 ? StrCat("g", groups) : ""),
                 groups * elements * BytesOf(desc.dtype),
                 [=](const Tensor& constant, std::span<std::byte> to) {
                   const auto pack = [&]<class T>(T*) {
                     for (int64_t i = 0; i < groups; ++i) {
                       PackPanels(constant.As<T>().data() + i * columns, out_channels, 1, depth,
                                  columns, width, reinterpret_cast<T*>(to.data()) + i * elements);
                     }
                   };
                   if (desc.dtype == DType::kF32) {
                     pack(static_cast<float*>(nullptr));
                   } else {
                     pack(static_cast<uint16_t*>(nullptr));
                   }
                   return Status();
                 }};
}

Result<Recipe> ConvTranspose(const ConvTransposeAttrs& attrs, const NodeView& node,
                             const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvTransposeGeometry(attrs, node));
  ONCILLA_TRY(CheckSizes(g));
  if (node.outputs[0].desc().elements() == 0) return Recipe();
  return Direct("transpose", "none", g, node, caps);
}

const KernelRow kRows[] = {
    Row<Conv>("Conv", kFloats).Packs<PackFilter>(),
    Row<ConvTranspose>("ConvTranspose", kFloats),
};

}  // namespace

std::span<const KernelRow> ConvKernels() { return kRows; }

}  // namespace oncilla::opencl
