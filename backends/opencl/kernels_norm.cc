// Recipes of the normalisation family: a group of work-items per row where rows lie along memory
// and are long, else a work-item per line.
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "backends/opencl/kernels.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/norm.h"

namespace oncilla::opencl {
namespace {

struct AroundAxis {
  int64_t outer, size, inner;
  int64_t elements() const { return outer * size * inner; }
};
Result<AroundAxis> Around(const Shape& shape, int64_t axis) {
  ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, shape.rank()));
  return AroundAxis{shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank())};
}

// A dispatch whose indices are 32 bits where that suffices for `most` elements.
class Builder {
 public:
  Builder(const Source& source, std::string entry, int64_t most)
      : wide_(most > std::numeric_limits<int32_t>::max() / 2) {
    d_.source = &source;
    d_.entry = std::move(entry);
    d_.defines.emplace_back("IDX", wide_ ? "long" : "int");
  }
  Builder& Add(const Arg& arg) {
    d_.args.push_back(arg);
    return *this;
  }
  Builder& Index(int64_t value) { return wide_ ? Add(value) : Add(static_cast<int32_t>(value)); }
  Builder& Define(std::string name, std::string value) {
    d_.defines.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  Builder& Type(std::string name, const Fact& fact) {
    return Define(std::move(name), std::string(Name(fact.dtype)));
  }
  // `items` work-items, or groups of them, in groups of `group`.
  Recipe Launch(int64_t groups, int64_t group, int64_t longest_loop) {
    d_.defines.emplace_back("GROUP", StrCat(group));
    d_.global = {groups * group, 1, 1};
    d_.local = {group, 1, 1};
    d_.longest_loop = longest_loop;
    Recipe recipe;
    recipe.dispatches.push_back(std::move(d_));
    return recipe;
  }

 private:
  Dispatch d_;
  bool wide_;
};

// Work-items for a row of n elements: a few elements for each.
int64_t RowGroup(int64_t n, const Capabilities& caps) {
  const auto most = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n / 4, 1)));
  return std::min(caps.Group(256), static_cast<int64_t>(most));
}

Result<Recipe> Softmax(const SoftmaxAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  const bool rows = at.inner == 1 && at.size >= 32;
  Builder b(cl::kNormSoftmax, rows ? "softmax_rows" : "softmax_columns", at.elements());
  b.Type("T", node.inputs[0]).Define("LOG", attrs.log ? "1" : "0").Add(In{0}).Add(Out{0});
  if (rows) {
    const int64_t group = RowGroup(at.size, caps);
    return b.Index(at.size).Launch(at.outer, group, DivideUp(at.size, group));
  }
  const int64_t lines = at.outer * at.inner, group = caps.Group(64);
  return b.Index(lines).Index(at.size).Index(at.inner).Launch(DivideUp(lines, group), group,
                                                              at.size);
}

// How a scale or offset is read for element k of a row: element k / step % size. Nothing when it is
// stretched along several axes that do not lie together.
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
  Builder b(cl::kNormLayerNorm, "layer_norm", n * rows);
  b.Type("T", node.inputs[0]).Define("CENTERED", node.op->name == "LayerNorm" ? "1" : "0");
  b.Add(In{0}).Add(Out{0});
  constexpr const char* kNames[] = {"", "SCALE", "OFFSET"};
  const Shape normalized(shape.begin() + axis, shape.end());
  for (int i = 1; i <= 2; ++i) {
    const bool has = node.has_input(static_cast<size_t>(i));
    b.Type(kNames[i], node.inputs[has ? i : 0]);
    if (!has) {
      b.Define(StrCat("HAS_", kNames[i]), "0");
      continue;
    }
    const auto stretch = StretchOf(normalized, node.inputs[i].shape.ToShape());
    b.Define(StrCat("HAS_", kNames[i]), stretch->size == n ? "1" : "2");
    b.Add(In{i}).Index(stretch->step).Index(stretch->size);
  }
  const int64_t group = RowGroup(n, caps);
  return b.Index(n).Add(static_cast<float>(attrs.epsilon)).Launch(rows, group, DivideUp(n, group));
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
  Builder b(cl::kNormBatchNorm, "batch_norm", at.elements());
  b.Type("T", node.inputs[0]).Type("S", node.inputs[1]).Type("O", node.inputs[2]);
  b.Type("M", node.inputs[3]).Type("V", node.inputs[4]);
  b.Add(In{0}).Add(Out{0}).Add(In{1}).Add(In{2}).Add(In{3}).Add(In{4});
  b.Index(at.elements()).Index(at.size).Index(at.inner).Add(static_cast<float>(attrs.epsilon));
  const int64_t group = caps.Group(256);
  return b.Launch(DivideUp(at.elements(), group), group, 0);
}

Recipe GroupsOf(const NodeView& node, int64_t groups, double epsilon, const Capabilities& caps) {
  const Shape shape = node.inputs[0].desc().shape;
  const int64_t places = shape.Product(1, shape.rank() - 1), channels = shape.back();
  if (shape.elements() == 0) return Recipe();
  const int64_t width = channels / groups, n = places * width;
  const int64_t group = RowGroup(n, caps);
  Builder b(cl::kNormGroupNorm, "group_norm", shape.elements());
  b.Type("T", node.inputs[0]).Type("S", node.inputs[1]).Type("O", node.inputs[2]);
  b.Add(In{0}).Add(Out{0}).Add(In{1}).Add(In{2});
  b.Index(places).Index(channels).Index(width).Add(static_cast<float>(epsilon));
  return b.Launch(shape[0] * groups, group, DivideUp(n, group));
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
  const int64_t lines = at.outer * at.inner, group = caps.Group(64);
  Builder b(cl::kNormLineNorm, "lp_normalize", at.elements());
  b.Type("T", node.inputs[0]).Define("P", StrCat(attrs.p)).Add(In{0}).Add(Out{0});
  b.Index(lines).Index(at.size).Index(at.inner);
  return b.Launch(DivideUp(lines, group), group, at.size);
}

Result<Recipe> Lrn(const LrnAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const AroundAxis at, Around(node.inputs[0].desc().shape, attrs.axis));
  if (at.elements() == 0) return Recipe();
  // Neighbours beyond the ends are none, so a window need not be longer than the line.
  const int64_t before = std::min((attrs.size - 1) / 2, at.size);
  const int64_t behind = std::min(attrs.size - 1 - (attrs.size - 1) / 2, at.size);
  Builder b(cl::kNormLineNorm, "lrn", at.elements());
  b.Type("T", node.inputs[0]).Define("P", "2").Add(In{0}).Add(Out{0});
  b.Index(at.elements()).Index(at.size).Index(at.inner).Index(before).Index(behind);
  b.Add(static_cast<float>(attrs.alpha / static_cast<double>(attrs.size)));
  b.Add(static_cast<float>(attrs.beta)).Add(static_cast<float>(attrs.bias));
  const int64_t group = caps.Group(64);
  return b.Launch(DivideUp(at.elements(), group), group, before + behind + 1);
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
