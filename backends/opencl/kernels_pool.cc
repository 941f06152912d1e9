// Recipes of pools: one work-item per element.
#include "backends/opencl/kernels.h"
#include "backends/opencl/matmul_recipe.h"
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

const KernelRow kRows[] = {
    Row<MaxPool>("MaxPool", kNumbers),
    Row<AveragePool>("AveragePool", kFloats),
    Row<LpPool>("LpPool", kFloats),
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace oncilla::opencl
