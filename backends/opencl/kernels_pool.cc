// Recipes of pools: one work-item per element.
#include "backends/opencl/kernels.h"
#include "backends/opencl/matmul_recipe.h"
#include "backends/opencl/move.h"
#include "backends/opencl/window_args.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/pool.h"

namespace oncilla::opencl {
namespace {

// The least value of a dtype, as a token.
std::string Least(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return "SCHAR_MIN";
    case DType::kI16:
      return "SHRT_MIN";
    case DType::kI32:
      return "INT_MIN";
    case DType::kI64:
      return "LONG_MIN";
    default:
      return IsUnsigned(dtype) ? "0" : "-INFINITY";
  }
}

std::string WideType(DType dtype) {
  if (dtype == DType::kF64) return "double";
  return IsFloat(dtype) ? "float" : IsSigned(dtype) ? "long" : "ulong";
}

// What the three pools have in common; more arguments may follow.
Result<Recipe> Pool(const char* entry, const PoolWindow& window, const NodeView& node,
                    bool with_indices, Defines defines, std::vector<Arg> more,
                    const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(window, node));
  if (!FitsInt(g)) return Unsupported("opencl: windows over more than 2^29 places");
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const int64_t group = caps.Group(64);
  Dispatch d{.source = &cl::kPoolWindow, .entry = entry, .defines = std::move(defines)};
  const std::string type = IndexType(std::max(x.elements(), y.elements()));
  d.defines.insert(d.defines.end(),
                   {{"T", std::string(Name(x.dtype))}, {"WIDE", WideType(x.dtype)}, {"IDX", type}});
  d.args = {In{0}, Out{0}};
  if (with_indices) d.args.push_back(Out{1});
  d.args.push_back(Index(y.elements(), type == "long"));
  d.args.push_back(static_cast<int32_t>(g.in_channels));
  AddWindow(g, d);
  d.args.insert(d.args.end(), more.begin(), more.end());
  if (std::string_view(entry) == "average_pool") {
    for (const WindowAxis& axis : g.axis) {
      d.args.push_back(static_cast<int32_t>(axis.in + axis.pad_end));
    }
  }
  d.global = {RoundUp(y.elements(), group), 1, 1};
  d.local = {group, 1, 1};
  d.longest_loop = std::max({g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel});
  return Recipe{{std::move(d)}};
}

Result<Recipe> MaxPool(const MaxPoolAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  Defines defines = {{"LEAST", Least(node.inputs[0].dtype)}};
  if (attrs.with_indices) defines.emplace_back("INDICES", "1");
  if (attrs.index_order == "nchw") defines.emplace_back("CHANNELS_FIRST", "1");
  return Pool("max_pool", attrs, node, attrs.with_indices, std::move(defines), {}, caps);
}

Result<Recipe> AveragePool(const AveragePoolAttrs& attrs, const NodeView& node,
                           const Capabilities& caps) {
  Defines defines;
  if (attrs.count_pads) defines.emplace_back("COUNT_PADS", "1");
  return Pool("average_pool", attrs, node, false, std::move(defines), {}, caps);
}

Result<Recipe> LpPool(const LpPoolAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  return Pool("lp_pool", attrs, node, false, {}, {static_cast<float>(attrs.p)}, caps);
}

// Channels-last windows of x as rows of y.
Result<Recipe> ExtractPatches(const ExtractPatchesAttrs& attrs, const NodeView& node,
                              const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(attrs, node));
  if (!FitsInt(g)) return Unsupported("opencl: windows over more than 2^29 places");
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const std::string type = IndexType(std::max(x.elements(), y.elements()));
  Dispatch d{.source = &cl::kPoolPatches,
             .entry = "extract_patches",
             .defines = {{"T", std::string(MoveType(x.dtype))}, {"IDX", type}},
             .args = {In{0}, Out{0}, Index(y.elements(), type == "long"),
                      static_cast<int32_t>(g.in_channels)}};
  AddWindow(g, d);
  LaunchFlat(d, y.elements(), caps);
  return Recipe{{std::move(d)}};
}

// Integers are summed up in their own type, where they wrap.
std::string OwnType(DType dtype) {
  if (IsFloat(dtype)) return WideType(dtype);
  const std::string size = BytesOf(dtype) == 1   ? "char"
                           : BytesOf(dtype) == 2 ? "short"
                           : BytesOf(dtype) == 4 ? "int"
                                                 : "long";
  return IsUnsigned(dtype) ? "u" + size : size;
}

Result<Recipe> Dilation(const DilationAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  PoolWindow window = attrs;
  const Shape filter = node.inputs[1].shape.ToShape();
  window.kernel.assign(filter.begin(), filter.end() - 1);
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(window, node));
  if (!FitsInt(g)) return Unsupported("opencl: windows over more than 2^29 places");
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const std::string type = IndexType(std::max(x.elements(), y.elements()));
  Dispatch d{.source = &cl::kPoolPatches,
             .entry = "dilation",
             .defines = {{"DILATION", "1"},
                         {"T", std::string(Name(x.dtype))},
                         {"WIDE", OwnType(x.dtype)},
                         {"LEAST", Least(x.dtype)},
                         {"IDX", type}},
             .args = {In{0}, In{1}, Out{0}, Index(y.elements(), type == "long"),
                      static_cast<int32_t>(g.in_channels)}};
  AddWindow(g, d);
  LaunchFlat(d, y.elements(), caps);
  d.longest_loop = g.taps();
  return Recipe{{std::move(d)}};
}

const KernelRow kRows[] = {
    Row<MaxPool>("MaxPool", kNumbers),   Row<AveragePool>("AveragePool", kFloats),
    Row<LpPool>("LpPool", kFloats),      Row<ExtractPatches>("ExtractPatches", kFixedSize),
    Row<Dilation>("Dilation", kNumbers),
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace oncilla::opencl
