// Recipes of ops with indices in a tensor. Kernels check every index, report a bad one in the run's
// error word and touch nothing for it.
#include <algorithm>

#include "backends/opencl/kernels.h"
#include "backends/opencl/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/indexing.h"

namespace oncilla::opencl {
namespace {

std::string DTypeName(const NodeView& node, size_t input) {
  return std::string(Name(node.inputs[input].dtype));
}

Result<Recipe> Gather(const GatherAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  const TensorDesc y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis);
  const auto batch =
      static_cast<int>(attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims);
  int64_t inner = x.shape.Product(axis + 1, x.rank());
  const int64_t bytes = BytesOf(x.dtype), width = VectorWidth(bytes, {&inner, 1});
  inner /= width;
  const int64_t elements = y.elements() / width;
  const Indices index(std::max(elements, indices.elements()));
  Dispatch d{.source = &cl::kIndexingGather,
             .entry = "gather",
             .defines = {{"T", VectorType(bytes, width)},
                         {"I", index.type()},
                         {"INDEX", DTypeName(node, 1)},
                         {"NEGATIVE", attrs.negative_indices ? "1" : "0"},
                         {"AXES", "0"}},
             .args = {In{0}, In{1}, Out{0}, index(elements), index(x.shape.Product(batch, axis)),
                      x.shape[axis], index(inner),
                      index(indices.shape.Product(batch, indices.rank())), ErrorWord{}}};
  LaunchFlat(d, elements, caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// Sizes of `indices` and strides of x along its axes, innermost first; the stride of `axis` is 0.
// Neighbours that are contiguous in both are one axis.
struct ElementAxis {
  int64_t size, stride;
};
std::vector<ElementAxis> ElementAxes(const Shape& x, const Shape& indices, int axis) {
  const auto strides = RowMajorStrides(x);
  std::vector<ElementAxis> out;
  for (int i = indices.rank(); i-- > 0;) {
    const ElementAxis a{indices[i], i == axis ? 0 : strides[i]};
    if (a.size == 1) continue;
    if (!out.empty() && a.stride == out.back().size * out.back().stride) {
      out.back().size *= a.size;
    } else {
      out.push_back(a);
    }
  }
  return out;
}

Result<Recipe> GatherElements(const GatherElementsAttrs& attrs, const NodeView& node,
                              const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  Recipe recipe;
  if (indices.elements() == 0) return recipe;
  const auto axes = ElementAxes(x.shape, indices.shape, axis);
  const Indices index(indices.elements());
  Dispatch d{.source = &cl::kIndexingGather,
             .entry = "gather_elements",
             .defines = {{"T", std::string(MoveType(x.dtype))},
                         {"I", index.type()},
                         {"INDEX", DTypeName(node, 1)},
                         {"NEGATIVE", "1"},
                         {"AXES", StrCat(axes.size())}},
             .args = {In{0}, In{1}, Out{0}}};
  for (const ElementAxis& a : axes) {
    d.args.insert(d.args.end(), {index(a.size), a.stride});
  }
  d.args.insert(d.args.end(), {index(indices.elements()), x.shape[axis],
                               x.shape.Product(axis + 1, x.rank()), ErrorWord{}});
  LaunchFlat(d, indices.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> GatherND(const GatherNDAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  const TensorDesc y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const auto batch = static_cast<int>(attrs.batch_dims);
  const auto depth = static_cast<int>(indices.shape.back());
  const auto strides = RowMajorStrides(x.shape);
  int64_t inner = x.shape.Product(batch + depth, x.rank());
  const int64_t bytes = BytesOf(x.dtype), width = VectorWidth(bytes, {&inner, 1});
  inner /= width;
  const int64_t elements = y.elements() / width;
  const Indices index(std::max(elements, indices.elements()));
  Dispatch d{.source = &cl::kIndexingGather,
             .entry = "gather_nd",
             .defines = {{"T", VectorType(bytes, width)},
                         {"I", index.type()},
                         {"INDEX", DTypeName(node, 1)},
                         {"NEGATIVE", attrs.negative_indices ? "1" : "0"},
                         {"AXES", StrCat(depth)}},
             .args = {In{0}, In{1}, Out{0}}};
  for (int j = depth; j-- > 0;) {
    d.args.insert(d.args.end(), {x.shape[batch + j], strides[batch + j] / width});
  }
  d.args.insert(d.args.end(), {index(elements), index(inner),
                               index(indices.shape.Product(batch, indices.rank() - 1)),
                               x.shape.Product(batch, x.rank()) / width, ErrorWord{}});
  LaunchFlat(d, elements, caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// What both scatters share: x is copied to y, then updates[i] is a row of `inner` elements.
struct Scatter {
  bool elements = false;  // ScatterElements' way of naming places
  bool negative = true;   // negative indices count from the end
  Reduction reduction = Reduction::kNone;
  int64_t updates = 0, inner = 1;
  std::vector<Arg> shape;  // SHAPE_PARAMS of scatter.cl
  size_t axes = 0;
};

Result<Recipe> MakeScatter(const Scatter& s, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  const int64_t bytes = BytesOf(y.dtype);
  Recipe recipe;
  AddMove(recipe, {0, 0, 0, 0, {{y.elements(), 1, 1}}}, bytes, caps);
  if (s.updates == 0) return recipe;
  if (s.updates > std::numeric_limits<int32_t>::max()) {
    return Unsupported("opencl numbers updates with 31 bits, there are ", s.updates);
  }
  const int64_t rows = s.inner == 0 ? 0 : y.elements() / s.inner;
  const Indices index(SaturatingMul(s.updates, std::max<int64_t>(s.inner, 1)));
  auto dispatch = [&](std::string entry) {
    return Dispatch{.source = &cl::kIndexingScatter,
                    .entry = std::move(entry),
                    .defines = {{"T", std::string(MoveType(y.dtype))},
                                {"TYPE", std::string(Name(y.dtype))},
                                {"I", index.type()},
                                {"INDEX", DTypeName(node, 1)},
                                {"AXES", StrCat(s.axes)},
                                {"ELEMENTS", s.elements ? "1" : "0"},
                                {"NEGATIVE", s.negative ? "1" : "0"},
                                {"REDUCTION", StrCat(static_cast<int>(s.reduction))}}};
  };
  auto push = [](Dispatch& d, std::initializer_list<Arg> args) {
    d.args.insert(d.args.end(), args);
  };
  auto push_shape = [&](Dispatch& d) {
    d.args.insert(d.args.end(), s.shape.begin(), s.shape.end());
  };
  if (s.reduction != Reduction::kNone) {
    Dispatch d = dispatch("scatter_ordered");
    // Enough work-items for the device; the result is the same for any number.
    const bool gpu = caps.shape == KernelShape::kGpu;
    const int64_t wanted = gpu ? 16384 : std::max<int64_t>(4 * caps.compute_units, 1);
    const int64_t classes = std::clamp<int64_t>(wanted / std::max<int64_t>(s.inner, 1), 1,
                                                std::clamp<int64_t>(rows, 1, 1024));
    const int64_t items = std::max<int64_t>(s.inner, 1) * classes;
    push(d, {In{1}, In{2}, Out{0}, index(s.updates), index(s.inner), classes});
    push_shape(d);
    push(d, {ErrorWord{}});
    const int64_t group = caps.Group(gpu || s.inner >= 64 ? 64 : 1);
    d.global = {RoundUp(items, group), 1, 1};
    d.local = {group, 1, 1};
    d.longest_loop = s.updates;
    recipe.dispatches.push_back(std::move(d));
    return recipe;
  }
  const Scratch last = recipe.AddScratch(std::max<int64_t>(rows, 1) * 4, caps);
  AddFill(recipe, last, std::max<int64_t>(rows, 1), -1, 4, caps);
  Dispatch mark = dispatch("scatter_mark");
  push(mark, {In{1}, last, index(s.updates)});
  push_shape(mark);
  push(mark, {ErrorWord{}});
  LaunchFlat(mark, s.updates, caps);
  recipe.dispatches.push_back(std::move(mark));
  const int64_t elements = s.updates * s.inner;
  if (elements == 0) return recipe;
  Dispatch write = dispatch("scatter_write");
  push(write, {In{1}, last, In{2}, Out{0}, index(elements), index(s.inner)});
  push_shape(write);
  LaunchFlat(write, elements, caps);
  recipe.dispatches.push_back(std::move(write));
  return recipe;
}

Result<Recipe> ScatterElements(const ScatterElementsAttrs& attrs, const NodeView& node,
                               const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  Scatter s;
  s.elements = true;
  ONCILLA_ASSIGN(s.reduction, ParseReduction(attrs.reduction));
  s.updates = indices.elements();
  for (const ElementAxis& a : ElementAxes(x.shape, indices.shape, axis)) {
    s.shape.insert(s.shape.end(), {a.size, a.stride});
    ++s.axes;
  }
  s.shape.insert(s.shape.end(), {x.shape[axis], x.shape.Product(axis + 1, x.rank())});
  return MakeScatter(s, node, caps);
}

Result<Recipe> ScatterND(const ScatterNDAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  const auto depth = static_cast<int>(indices.shape.back());
  Scatter s;
  s.negative = attrs.negative_indices;
  ONCILLA_ASSIGN(s.reduction, ParseReduction(attrs.reduction));
  s.updates = indices.shape.Product(0, indices.rank() - 1);
  s.inner = x.shape.Product(depth, x.rank());
  s.axes = static_cast<size_t>(depth);
  int64_t stride = 1;  // in rows
  for (int j = depth; j-- > 0;) {
    s.shape.insert(s.shape.end(), {x.shape[j], stride});
    stride = SaturatingMul(stride, x.shape[j]);
  }
  s.shape.insert(s.shape.end(), {int64_t{0}, int64_t{0}});
  return MakeScatter(s, node, caps);
}

const KernelRow kRows[] = {
    Row<Gather>("Gather", kFixedSize),       Row<GatherElements>("GatherElements", kFixedSize),
    Row<GatherND>("GatherND", kFixedSize),   Row<ScatterElements>("ScatterElements", kFixedSize),
    Row<ScatterND>("ScatterND", kFixedSize),
};

}  // namespace

std::span<const KernelRow> IndexingKernels() { return kRows; }

}  // namespace oncilla::opencl
