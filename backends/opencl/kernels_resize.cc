// The recipe of Resize: one work-item per element, up to three spatial axes.
#include "backends/opencl/kernels.h"
#include "backends/opencl/matmul_recipe.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/resize.h"

namespace oncilla::opencl {
namespace {

constexpr int kMostAxes = 3;

Result<Recipe> Resize(const ResizeAttrs& given, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, node.inputs));
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  const int spatial = x.rank() - 2;
  if (y.elements() == 0) return Recipe();
  const int64_t group = caps.Group(64);
  const bool moves = attrs.mode == "nearest", area = attrs.mode == "area";
  Dispatch d{.source = &cl::kResizeResize, .entry = "resize"};
  const std::string type = IndexType(std::max(x.elements(), y.elements()));
  d.defines = {{"IDX", type},
               {"TAPS", moves                    ? "1"
                        : area                   ? "0"
                        : attrs.mode == "linear" ? "2"
                                                 : "4"}};
  if (moves) {
    d.defines.emplace_back("T", std::string(MoveType(x.dtype)));
    d.defines.emplace_back("RULE", "RULE_" + attrs.nearest);
  } else {
    d.defines.emplace_back("T", std::string(Name(x.dtype)));
    d.defines.emplace_back("WIDE",
                           IsInteger(x.dtype) || x.dtype == DType::kF64 ? "double" : "float");
    if (attrs.exclude_outside) d.defines.emplace_back("EXCLUDE_OUTSIDE", "1");
    if (attrs.cubic_steps > 0) d.defines.emplace_back("STEPS", StrCat(attrs.cubic_steps));
  }
  d.args = {In{0}, Out{0}, Index(y.elements(), type == "long"),
            static_cast<int32_t>(x.shape.back())};
  if (!moves) d.args.push_back(static_cast<float>(attrs.cubic_a));
  if (attrs.coordinates == "crop_and_resize") {
    d.defines.emplace_back("CROP", "1");
    if (moves) d.defines.emplace_back("TYPE", std::string(Name(x.dtype)));
    d.args.push_back(static_cast<float>(attrs.outside));
  }
  for (int i = spatial - kMostAxes; i < spatial; ++i) {
    ResizeAxis axis;
    if (i >= 0) {
      ONCILLA_ASSIGN(axis, AxisOf(attrs, i, x.shape[1 + i], y.shape[1 + i]));
    }
    if (area) {
      axis.multiply = axis.ratio;
      axis.divide = axis.ratio;  // its inverse weighs what an output covers
    }
    d.args.push_back(static_cast<int32_t>(axis.in));
    d.args.push_back(static_cast<int32_t>(axis.out));
    for (const float v : {axis.before, axis.multiply, axis.divide,
                          axis.divide == 0 ? 0 : 1 / axis.divide, axis.offset, axis.after}) {
      d.args.push_back(v);
    }
    if (area) {
      const auto covered = static_cast<double>(axis.in) / static_cast<double>(axis.out);
      d.longest_loop = std::max(d.longest_loop, static_cast<int64_t>(covered) + 2);
    }
  }
  d.global = {RoundUp(y.elements(), group), 1, 1};
  d.local = {group, 1, 1};
  return Recipe{{std::move(d)}};
}

Status CanResize(const ResizeAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const Fact& x = node.inputs[0];
  if (attrs.mode != "nearest" && IsInteger(x.dtype) && !caps.fp64) {
    return Unsupported("opencl: Resize of ", x.dtype, " needs double arithmetic");
  }
  if (x.shape.ranked() && x.shape.rank() - 2 > kMostAxes) {
    return Unsupported("opencl: Resize over ", x.shape.rank() - 2, " spatial axes");
  }
  return Status();
}

const KernelRow kRows[] = {
    Row<Resize>("Resize", kFixedSize).CanRun<CanResize>(),
};

}  // namespace

std::span<const KernelRow> ResizeKernels() { return kRows; }

}  // namespace oncilla::opencl
