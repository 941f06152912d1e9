// Recipes of ops with indices in a tensor. Kernels check every index. An invalid one is reported in
// the run's error word, and nothing is read or written for it.
#include "engine/ops/array/indexing.h"

#include <algorithm>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/move.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

Result<Recipe> Gather(const GatherAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  const TensorDesc y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis);
  const auto batch =
      static_cast<int>(attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims);
  int64_t inner = x.shape.Product(axis + 1, x.rank());
  const int64_t bytes = BytesOf(x.dtype), width = VectorWidth(bytes, {&inner, 1});
  inner /= width;
  const int64_t elements = y.elements() / width;
  const IndexType index(std::max(elements, indices.elements()), IndexType::kPlaces);
  DispatchBuilder b(cl::kIndexingGather, "gather", index);
  b.Define({{"T", VectorType(bytes, width)},
            {"I", index.name()},
            {"INDEX", TypeName(node.inputs[1].dtype)},
            {"NEGATIVE", Flag(attrs.negative_indices)},
            {"AXES", "0"}});
  b.Arg("x", In{0}).Arg("indices", In{1}).Arg("y", Out{0});
  b.Index({{"elements", elements}, {"outer", x.shape.Product(batch, axis)}});
  b.Arg("size", x.shape[axis]);
  b.Index({{"inner", inner}, {"count", indices.shape.Product(batch, indices.rank())}});
  return b.Error().Flat(elements, caps).Alone();
}

// Sizes of `indices` and strides of x along its axes, innermost first; the stride of `axis` is 0.
// Neighbouring axes that are contiguous in both are merged.
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
  if (indices.elements() == 0) return Recipe();
  const auto axes = ElementAxes(x.shape, indices.shape, axis);
  const IndexType index(indices.elements(), IndexType::kPlaces);
  DispatchBuilder b(cl::kIndexingGather, "gather_elements", index);
  b.Define({{"T", std::string(MoveType(x.dtype))},
            {"I", index.name()},
            {"INDEX", TypeName(node.inputs[1].dtype)},
            {"NEGATIVE", "1"},
            {"AXES", StrCat(axes.size())}});
  b.Arg("x", In{0}).Arg("indices", In{1}).Arg("y", Out{0});
  for (size_t i = 0; i < axes.size(); ++i) {
    b.Index(StrCat("n", i), axes[i].size).Arg(StrCat("s", i), axes[i].stride);
  }
  b.Index("elements", indices.elements()).Arg("size", x.shape[axis]);
  b.Arg("step", x.shape.Product(axis + 1, x.rank())).Error();
  return b.Flat(indices.elements(), caps).Alone();
}

Result<Recipe> GatherND(const GatherNDAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), indices = node.inputs[1].desc();
  const TensorDesc y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const auto batch = static_cast<int>(attrs.batch_dims);
  const auto depth = static_cast<int>(indices.shape.back());
  const auto strides = RowMajorStrides(x.shape);
  int64_t inner = x.shape.Product(batch + depth, x.rank());
  const int64_t bytes = BytesOf(x.dtype), width = VectorWidth(bytes, {&inner, 1});
  inner /= width;
  const int64_t elements = y.elements() / width;
  const IndexType index(std::max(elements, indices.elements()), IndexType::kPlaces);
  DispatchBuilder b(cl::kIndexingGather, "gather_nd", index);
  b.Define({{"T", VectorType(bytes, width)},
            {"I", index.name()},
            {"INDEX", TypeName(node.inputs[1].dtype)},
            {"NEGATIVE", Flag(attrs.negative_indices)},
            {"AXES", StrCat(depth)}});
  b.Arg("x", In{0}).Arg("indices", In{1}).Arg("y", Out{0});
  for (int i = 0; i < depth; ++i) {
    const int axis = batch + depth - 1 - i;
    b.Arg(StrCat("size", i), x.shape[axis]).Arg(StrCat("step", i), strides[axis] / width);
  }
  b.Index({{"elements", elements}, {"inner", inner}});
  b.Index("per_batch", indices.shape.Product(batch, indices.rank() - 1));
  b.Arg("batch_step", x.shape.Product(batch, x.rank()) / width).Error();
  return b.Flat(elements, caps).Alone();
}

// The common part of both scatters: x is copied to y, then each updates[i] is a row of `inner`
// elements.
struct Scatter {
  bool elements = false;  // ScatterElements' way of naming positions
  bool negative = true;   // negative indices count from the end
  Reduction reduction = Reduction::kNone;
  int64_t updates = 0, inner = 1;
  std::vector<std::pair<std::string, int64_t>> shape;  // SHAPE_PARAMS of scatter.cl
  size_t axes = 0;
  void AddAxis(int64_t size, int64_t stride) {
    shape.insert(shape.end(), {{StrCat("n", axes), size}, {StrCat("s", axes), stride}});
    ++axes;
  }
};

Result<Recipe> MakeScatter(const Scatter& s, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  const int64_t bytes = BytesOf(y.dtype);
  Recipe recipe;
  // y begins as a copy of x.
  AddMove(recipe, {0, 0, 0, 0, {{y.elements(), 1, 1}}}, bytes, caps);
  if (s.updates == 0) return recipe;
  if (s.updates > std::numeric_limits<int32_t>::max()) {
    return Unsupported("opencl numbers updates with 31 bits, there are ", s.updates);
  }
  const int64_t rows = s.inner == 0 ? 0 : y.elements() / s.inner;
  const IndexType index(SaturatingMul(s.updates, std::max<int64_t>(s.inner, 1)),
                        IndexType::kPlaces);
  auto begin = [&](const char* entry) {
    DispatchBuilder b(cl::kIndexingScatter, entry, index);
    b.Define({{"T", std::string(MoveType(y.dtype))},
              {"TYPE", TypeName(y.dtype)},
              {"I", index.name()},
              {"INDEX", TypeName(node.inputs[1].dtype)},
              {"AXES", StrCat(s.axes)},
              {"ELEMENTS", Flag(s.elements)},
              {"NEGATIVE", Flag(s.negative)},
              {"REDUCTION", StrCat(static_cast<int>(s.reduction))}});
    b.Arg("indices", In{1});
    return b;
  };
  auto add_shape = [&](DispatchBuilder& b) {
    for (const auto& [name, value] : s.shape) b.Arg(name, value);
  };
  // With a reduction: a single launch, in which each work-item processes all updates in order.
  if (s.reduction != Reduction::kNone) {
    // Enough work-items for the device; the result does not depend on their number.
    const Tuning& tuning = TuningOf(caps);
    const int64_t wanted = std::max<int64_t>(
        tuning.scatter_items + tuning.scatter_items_per_unit * caps.compute_units, 1);
    const int64_t inner = std::max<int64_t>(s.inner, 1);
    const int64_t classes = std::clamp<int64_t>(
        wanted / inner, 1, std::clamp<int64_t>(rows, 1, tuning.scatter_classes));
    DispatchBuilder b = begin("scatter_ordered");
    b.Arg("values", In{2}).Arg("y", Out{0});
    b.Index({{"updates", s.updates}, {"inner", s.inner}}).Arg("classes", classes);
    add_shape(b);
    b.Error().Loop(s.updates);
    const bool grouped = s.inner >= tuning.scatter_grouped;
    b.Items(inner * classes, caps.Group(grouped ? tuning.loop_group : 1)).AddTo(recipe);
    return recipe;
  }
  // Without a reduction the last update of a row wins: one launch finds it, another writes it.
  const Scratch last = recipe.AddScratch(std::max<int64_t>(rows, 1) * 4, caps);
  AddFill(recipe, last, std::max<int64_t>(rows, 1), -1, 4, caps);
  DispatchBuilder mark = begin("scatter_mark");
  mark.Arg("last", last).Index("updates", s.updates);
  add_shape(mark);
  mark.Error().Flat(s.updates, caps).AddTo(recipe);
  const int64_t elements = s.updates * s.inner;
  if (elements == 0) return recipe;
  DispatchBuilder write = begin("scatter_write");
  write.Arg("last", last).Arg("values", In{2}).Arg("y", Out{0});
  write.Index({{"elements", elements}, {"inner", s.inner}});
  add_shape(write);
  write.Flat(elements, caps).AddTo(recipe);
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
    s.AddAxis(a.size, a.stride);
  }
  s.shape.emplace_back("size", x.shape[axis]);
  s.shape.emplace_back("step", x.shape.Product(axis + 1, x.rank()));
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
  int64_t stride = 1;  // in rows
  for (int j = depth; j-- > 0;) {
    s.AddAxis(x.shape[j], stride);
    stride = SaturatingMul(stride, x.shape[j]);
  }
  s.shape.insert(s.shape.end(), {{"unused", 0}, {"unused_too", 0}});
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
