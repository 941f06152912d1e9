// Recipes of MatMul: panels on devices that prefer wide vectors, tiles in local memory on others,
// and one work-item per element for all products that neither supports.
#include "backends/opencl/recipes/columns.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/tiles.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// Adds the sizes and steps of one product, and its batch.
void AddSizes(const MatMulGeometry& g, DispatchBuilder& b) {
  b.Index({{"m", g.m}, {"n", g.n}, {"k", g.k}});
  b.Index({{"a_row", g.a_row}, {"a_col", g.a_col}, {"b_row", g.b_row}, {"b_col", g.b_col}});
  AddBatch(BatchOf(g), b);
}

Recipe General(const MatMulAttrs& attrs, const MatMulGeometry& g, const NodeView& node,
               int64_t most, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  const int64_t total = g.batch * g.m * g.n;
  const IndexType index(most);
  DispatchBuilder b(cl::kMatmulGeneral, "general", index);
  b.Define({{"T", TypeName(dtype)}, {"WIDE", SumType(dtype)}, {"IDX", index.name()}});
  if (IsInteger(dtype)) b.Define("INTEGER", "1");
  b.Arg("a", In{0}).Arg("b", In{1});
  AddEpilogue(node, attrs.activation, b);
  b.Arg("y", Out{0}).Index("total", total);
  AddSizes(g, b);
  return b.Items(total, caps.Group(TuningOf(caps).loop_group)).Loop(g.k).Alone();
}

// Depends on the constant alone, as all packing does. Weights of one column stay unpacked.
bool IsPacked(const MatMulAttrs& attrs, const Fact& b, const Capabilities& caps) {
  if (!TuningOf(caps).panels || !b.constant || !IsCarried(b.dtype)) return false;
  const Shape shape = b.shape.ToShape();
  return shape.rank() >= 2 && shape.elements() > 0 &&
         shape[shape.rank() - (attrs.transpose_b ? 2 : 1)] > 1;
}

Recipe Panels(const MatMulAttrs& attrs, const MatMulGeometry& g, bool packed, const NodeView& node,
              int64_t most, const Capabilities& caps) {
  const int64_t matrix = g.k * g.n, elements = PackedElements(g.k, g.n, caps);
  const int64_t matrices = node.inputs[1].desc().elements() / matrix;
  Recipe recipe;
  Arg b = In{1};
  if (!packed) {
    b = recipe.AddScratch(matrices * elements * BytesOf(node.inputs[1].dtype), caps);
    recipe.dispatches.push_back(MakePack(In{1}, b, node.inputs[1].dtype,
                                         {matrices, matrix, g.b_row, g.b_col, g.k, g.n}, caps));
  }
  PanelLaunch launch = PanelsOf(g);
  for (BatchAxes::Axis& axis : launch.batch.axes) axis.b_step = axis.b_step / matrix * elements;
  launch.most = std::max(most, matrices * elements);
  AddPanels(launch, In{0}, b, node, attrs.activation, caps, recipe);
  return recipe;
}

Result<Recipe> MatMul(const MatMulAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc a = node.inputs[0].desc(), b = node.inputs[1].desc();
  const MatMulGeometry g = GeometryOf(attrs, a.shape, b.shape);
  const int64_t most = std::max({a.elements(), b.elements(), g.batch * g.m * g.n});
  if (g.batch * g.m * g.n == 0) return Recipe();
  const bool packed = IsPacked(attrs, node.inputs[1], caps);
  const bool small_counts = g.batch <= kMostGroups && g.n / 4 <= kMostGroups;
  if (packed && !small_counts) {
    return Unsupported("opencl: a product of ", g.batch, " matrices with ", g.n, " columns");
  }
  if (IsCarried(a.dtype) && small_counts && g.k > 0) {
    if (packed || (TuningOf(caps).panels && g.m > 1 && g.n > 1)) {
      return Panels(attrs, g, packed, node, most, caps);
    }
    if (TakesColumns(g, a.dtype, caps)) {
      return ColumnsMatMul(attrs.activation, g, node, most, caps);
    }
    if (g.m > 1 && g.n > 1 && TakesRegisters(SizesOf(g, a.dtype), caps)) {
      return RegisterMatMul(attrs.activation, g, node, most, caps);
    }
    // A single row or column uses few lanes of a tile. But with one work-item per sum, each would
    // wait for memory at every k, which costs more if K is long.
    const bool tiles = (g.m > 1 && g.n > 1) || g.k >= TuningOf(caps).part_least;
    if (!TuningOf(caps).panels && HasTiles(caps) && tiles) {
      return PlannedMatMul(attrs.activation, g, node, most, caps);
    }
  }
  return General(attrs, g, node, most, caps);
}

Result<Packing> PackWeights(const MatMulAttrs& attrs, const NodeView& node, int input,
                            const Capabilities& caps) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  const TensorDesc desc = fact.desc();
  if (input != 1 || !IsPacked(attrs, fact, caps)) return Packing{"dense", desc.bytes(), nullptr};
  const int rank = desc.shape.rank();
  const int64_t rows = desc.shape[rank - 2], columns = desc.shape[rank - 1];
  const int64_t k = attrs.transpose_b ? columns : rows, n = attrs.transpose_b ? rows : columns;
  const int64_t row_step = attrs.transpose_b ? 1 : n, column_step = attrs.transpose_b ? k : 1;
  const PackSource source{desc.elements() / (k * n), k * n, row_step, column_step, k, n};
  return PackedPanels(desc, source, attrs.transpose_b ? "t" : "", caps);
}

const KernelRow kRows[] = {
    Row<MatMul>("MatMul", kNumbers).Packs<PackWeights>(),
};

}  // namespace

std::span<const KernelRow> MatMulKernels() { return kRows; }

}  // namespace oncilla::opencl
