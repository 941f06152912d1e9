// Recipes of the normalisation family: a group of work-items per row if rows are contiguous and
// long (on devices that prefer vectors, one work-item with vectors), otherwise a work-item per
// line.
#include "engine/ops/nn/norm.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/broadcast.h"

namespace oncilla::opencl {
namespace {

DispatchBuilder Begin(const Source& source, std::string entry, int64_t most, const Fact& x) {
  const IndexType index(most);
  DispatchBuilder b(source, std::move(entry), index);
  b.Define({{"IDX", index.name()}, {"T", TypeName(x.dtype)}});
  return b;
}
Recipe Launch(DispatchBuilder& b, int64_t groups, int64_t group, int64_t longest_loop) {
  b.Define("GROUP", StrCat(group));
  return b.Groups({groups, 1, 1}, {group, 1, 1}).Loop(longest_loop).Alone();
}

// Whether rows are computed by norm/lines.cl: one work-item each, with vectors. Not if the driver
// stops long loops.
bool TakesLines(const Fact& x, const Capabilities& caps) {
  return TuningOf(caps).lines && caps.max_loop_trips == 0 && x.dtype != DType::kF64;
}
DispatchBuilder BeginLines(const char* entry, int64_t elements, const Fact& x,
                           const Capabilities& caps) {
  DispatchBuilder b = Begin(cl::kNormLines, entry, elements, x);
  b.Define("V", StrCat(PanelOf(caps).vector));
  return b;
}
Recipe LaunchLines(DispatchBuilder& b, int64_t rows, int64_t n) {
  return b.Groups({rows, 1, 1}).Loop(n).Alone();
}

// Work-items for a row of n elements: each takes a few elements.
int64_t RowGroup(int64_t n, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const int64_t items = std::max<int64_t>(n / tuning.row_elements, 1);
  const auto most = std::bit_ceil(static_cast<uint64_t>(items));
  return std::min(caps.Group(tuning.flat_group), static_cast<int64_t>(most));
}

// If a row fits, its group holds it in registers, so that memory is read once.
void AddEach(int64_t n, int64_t group, const Capabilities& caps, DispatchBuilder& b) {
  const auto each = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(DivideUp(n, group))));
  if (each <= TuningOf(caps).held_elements) b.Define("EACH", StrCat(std::max<int64_t>(each, 4)));
}

Result<Recipe> Softmax(const SoftmaxAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  const bool rows = at.inner == 1 && at.size >= TuningOf(caps).short_row;
  if (rows && TakesLines(node.inputs[0], caps)) {
    DispatchBuilder b = BeginLines("softmax_lines", at.elements(), node.inputs[0], caps);
    b.Define("LOG", Flag(attrs.log)).Arg("x", In{0}).Arg("y", Out{0}).Index("n", at.size);
    return LaunchLines(b, at.outer, at.size);
  }
  DispatchBuilder b = Begin(cl::kNormSoftmax, rows ? "softmax_rows" : "softmax_columns",
                            at.elements(), node.inputs[0]);
  b.Define("LOG", Flag(attrs.log));
  b.Arg("x", In{0}).Arg("y", Out{0});
  if (rows) {
    const int64_t group = RowGroup(at.size, caps);
    b.Index("n", at.size);
    AddEach(at.size, group, caps, b);
    return Launch(b, at.outer, group, DivideUp(at.size, group));
  }
  const int64_t group = caps.Group(TuningOf(caps).loop_group);
  b.Index({{"lines", at.lines()}, {"n", at.size}, {"inner", at.inner}});
  return Launch(b, DivideUp(at.lines(), group), group, at.size);
}

// The way in which a scale or offset is read for element k of a row: element k / step % size.
// nullopt if it is broadcast along several axes that are not adjacent.
struct Stretch {
  int64_t step = 1, size = 1;
};
std::optional<Stretch> StretchOf(const Shape& normalized, const Shape& own) {
  const BroadcastAxes axes = MergeBroadcast(normalized, {&own, 1});
  Stretch s;
  int64_t step = 1;
  for (int i = axes.rank; i-- > 0; step *= axes.sizes[i]) {
    if (axes.strides[0][i] == 0) continue;
    if (s.size > 1) return std::nullopt;
    s = {step, axes.sizes[i]};
  }
  return s;
}

Result<Recipe> LayerNorm(const LayerNormAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  const Shape shape = node.inputs[0].desc().shape;
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t n = shape.Product(axis, shape.rank()), rows = shape.Product(0, axis);
  if (n * rows == 0) return Recipe();
  const Shape normalized(shape.begin() + axis, shape.end());
  // Whether scale and offset can be read as vectors: one float or 16-bit float for each element.
  const auto along = [&](size_t i) {
    return !node.has_input(i) || (node.inputs[i].dtype != DType::kF64 &&
                                  StretchOf(normalized, node.inputs[i].shape.ToShape())->size == n);
  };
  const bool lines = TakesLines(node.inputs[0], caps) && along(1) && along(2);
  DispatchBuilder b = lines ? BeginLines("layer_norm_lines", n * rows, node.inputs[0], caps)
                            : Begin(cl::kNormLayerNorm, "layer_norm", n * rows, node.inputs[0]);
  b.Define("CENTERED", Flag(node.op->name == "LayerNorm"));
  b.Arg("x", In{0}).Arg("y", Out{0});
  constexpr const char* kTypes[] = {"", "SCALE", "OFFSET"};
  constexpr const char* kNames[] = {"", "scale", "offset"};
  for (int i = 1; i <= 2; ++i) {
    const bool has = node.has_input(static_cast<size_t>(i));
    b.Type(kTypes[i], node.inputs[has ? i : 0]);
    if (!has) {
      b.Define(StrCat("HAS_", kTypes[i]), "0");
      continue;
    }
    const auto stretch = StretchOf(normalized, node.inputs[i].shape.ToShape());
    b.Define(StrCat("HAS_", kTypes[i]), stretch->size == n ? "1" : "2");
    const std::string name = kNames[i];
    b.Arg(name, In{i});
    if (!lines) b.Index({{name + "_step", stretch->step}, {name + "_size", stretch->size}});
  }
  b.Index("n", n).Float("epsilon", attrs.epsilon);
  if (lines) return LaunchLines(b, rows, n);
  const int64_t group = RowGroup(n, caps);
  AddEach(n, group, caps, b);
  return Launch(b, rows, group, DivideUp(n, group));
}

Status CheckLayerNorm(const LayerNormAttrs& attrs, const NodeView& node, const Capabilities&) {
  if (!node.inputs[0].shape.known()) return Status();
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const Shape normalized(shape.begin() + axis, shape.end());
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.has_input(i) || !node.inputs[i].shape.known()) continue;
    if (!StretchOf(normalized, node.inputs[i].shape.ToShape())) {
      return Unsupported("opencl: ", node.op->name, " with a ", i == 1 ? "scale" : "offset",
                         " of shape ", node.inputs[i].shape, " stretched along axes apart");
    }
  }
  return Status();
}

Result<Recipe> BatchNorm(const BatchNormAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  DispatchBuilder b = Begin(cl::kNormBatchNorm, "batch_norm", at.elements(), node.inputs[0]);
  b.Type("S", node.inputs[1]).Type("O", node.inputs[2]);
  b.Type("M", node.inputs[3]).Type("V", node.inputs[4]);
  b.Arg("x", In{0}).Arg("y", Out{0}).Arg("scale", In{1}).Arg("offset", In{2});
  b.Arg("mean", In{3}).Arg("variance", In{4});
  b.Index({{"elements", at.elements()}, {"channels", at.size}, {"inner", at.inner}});
  b.Float("epsilon", attrs.epsilon);
  const int64_t group = caps.Group(TuningOf(caps).flat_group);
  return Launch(b, DivideUp(at.elements(), group), group, 0);
}

Recipe GroupsOf(const NodeView& node, int64_t groups, double epsilon, const Capabilities& caps) {
  const Shape shape = node.inputs[0].desc().shape;
  const int64_t places = shape.Product(1, shape.rank() - 1), channels = shape.back();
  if (shape.elements() == 0) return Recipe();
  const int64_t width = channels / groups, n = places * width;
  const int64_t group = RowGroup(n, caps);
  DispatchBuilder b = Begin(cl::kNormGroupNorm, "group_norm", shape.elements(), node.inputs[0]);
  b.Type("S", node.inputs[1]).Type("O", node.inputs[2]);
  b.Arg("x", In{0}).Arg("y", Out{0}).Arg("scale", In{1}).Arg("offset", In{2});
  b.Index({{"places", places}, {"channels", channels}, {"width", width}});
  b.Float("epsilon", epsilon);
  return Launch(b, shape[0] * groups, group, DivideUp(n, group));
}
Result<Recipe> InstanceNorm(const InstanceNormAttrs& attrs, const NodeView& node,
                            const Capabilities& caps) {
  return GroupsOf(node, node.inputs[0].desc().shape.back(), attrs.epsilon, caps);
}
Result<Recipe> GroupNorm(const GroupNormAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  return GroupsOf(node, attrs.groups, attrs.epsilon, caps);
}

Result<Recipe> LpNormalize(const LpNormalizeAttrs& attrs, const NodeView& node,
                           const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  const int64_t group = caps.Group(TuningOf(caps).loop_group);
  DispatchBuilder b = Begin(cl::kNormLineNorm, "lp_normalize", at.elements(), node.inputs[0]);
  b.Define("P", StrCat(attrs.p));
  b.Arg("x", In{0}).Arg("y", Out{0});
  b.Index({{"lines", at.lines()}, {"n", at.size}, {"inner", at.inner}});
  return Launch(b, DivideUp(at.lines(), group), group, at.size);
}

Result<Recipe> Lrn(const LrnAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  // There are no neighbours beyond the ends, so a window need not be longer than the line.
  const int64_t before = std::min((attrs.size - 1) / 2, at.size);
  const int64_t behind = std::min(attrs.size - 1 - (attrs.size - 1) / 2, at.size);
  DispatchBuilder b = Begin(cl::kNormLineNorm, "lrn", at.elements(), node.inputs[0]);
  b.Define("P", "2").Arg("x", In{0}).Arg("y", Out{0});
  b.Index({{"elements", at.elements()}, {"n", at.size}, {"inner", at.inner}});
  b.Index({{"before", before}, {"behind", behind}});
  b.Float("factor", attrs.alpha / static_cast<double>(attrs.size));
  b.Float("beta", attrs.beta).Float("bias", attrs.bias);
  const int64_t group = caps.Group(TuningOf(caps).loop_group);
  return Launch(b, DivideUp(at.elements(), group), group, before + behind + 1);
}

constexpr KernelRow kRows[] = {
    Row<Softmax>("Softmax", kFloats),
    Row<BatchNorm>("BatchNorm", kFloats),
    Row<LayerNorm>("LayerNorm", kFloats).CanRun<CheckLayerNorm>(),
    Row<LayerNorm>("RmsNorm", kFloats).CanRun<CheckLayerNorm>(),
    Row<InstanceNorm>("InstanceNorm", kFloats),
    Row<GroupNorm>("GroupNorm", kFloats),
    Row<Lrn>("LRN", kFloats),
    Row<LpNormalize>("LpNormalize", kFloats),
};

}  // namespace

std::span<const KernelRow> NormKernels() { return kRows; }

}  // namespace oncilla::opencl
