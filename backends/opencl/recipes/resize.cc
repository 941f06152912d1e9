// The recipe of Resize: one work-item per element, up to three spatial axes.
#include "engine/ops/nn/resize.h"

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

constexpr int kMostAxes = 3;

Result<Recipe> Resize(const ResizeAttrs& given, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, node.inputs));
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  const int spatial = x.rank() - 2;
  if (y.elements() == 0) return Recipe();
  const bool moves = attrs.mode == "nearest", area = attrs.mode == "area";
  const IndexType index(std::max(x.elements(), y.elements()));
  DispatchBuilder b(cl::kResizeResize, "resize", index);
  b.Define({{"IDX", index.name()},
            {"TAPS", moves                    ? "1"
                     : area                   ? "0"
                     : attrs.mode == "linear" ? "2"
                                              : "4"}});
  if (moves) {
    b.Define("T", std::string(MoveType(x.dtype)));
    b.Define("RULE", "RULE_" + attrs.nearest);
  } else {
    b.Define("T", TypeName(x.dtype));
    b.Define("WIDE", IsInteger(x.dtype) || x.dtype == DType::kF64 ? "double" : "float");
    if (attrs.exclude_outside) b.Define("EXCLUDE_OUTSIDE", "1");
    if (attrs.cubic_steps > 0) b.Define("STEPS", StrCat(attrs.cubic_steps));
  }
  b.Arg("x", In{0}).Arg("y", Out{0}).Index("total", y.elements()).Int("channels", x.shape.back());
  if (!moves) b.Float("cubic_a", attrs.cubic_a);
  if (attrs.coordinates == "crop_and_resize") {
    b.Define("CROP", "1");
    if (moves) b.Define("TYPE", TypeName(x.dtype));
    b.Float("outside", attrs.outside);
  }
  int64_t longest_loop = 0;
  for (int n = 0; n < kMostAxes; ++n) {
    const int i = spatial - kMostAxes + n;
    ResizeAxis axis;
    if (i >= 0) {
      ONCILLA_ASSIGN(axis, AxisOf(attrs, i, x.shape[1 + i], y.shape[1 + i]));
    }
    if (area) {
      axis.multiply = axis.ratio;
      axis.divide = axis.ratio;  // its inverse is the weight of the pixels that an output covers
    }
    b.Int({{StrCat("in", n), axis.in}, {StrCat("out", n), axis.out}});
    b.Float(StrCat("before", n), axis.before).Float(StrCat("multiply", n), axis.multiply);
    b.Float(StrCat("divide", n), axis.divide);
    b.Float(StrCat("inverse", n), axis.divide == 0 ? 0 : 1 / axis.divide);
    b.Float(StrCat("offset", n), axis.offset).Float(StrCat("after", n), axis.after);
    if (area) {
      const auto covered = static_cast<double>(axis.in) / static_cast<double>(axis.out);
      longest_loop = std::max(longest_loop, static_cast<int64_t>(covered) + 2);
    }
  }
  b.Items(y.elements(), caps.Group(TuningOf(caps).loop_group));
  return b.Loop(longest_loop).Alone();
}

Status CanResize(const ResizeAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const Fact& x = node.inputs[0];
  if (attrs.antialias) return Unsupported("opencl: Resize with antialias");
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
