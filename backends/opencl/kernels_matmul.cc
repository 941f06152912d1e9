// Recipes of MatMul: panels on devices that want wide vectors, tiles in local memory on the others,
// and one work-item per element for whatever these do not take.
#include "backends/opencl/kernels.h"
#include "backends/opencl/matmul_recipe.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// Some drivers count groups beyond the first axis in 16 bits.
constexpr int64_t kMostGroups = 65535;

Recipe General(const MatMulAttrs& attrs, const MatMulGeometry& g, const NodeView& node,
               int64_t most, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  const int64_t total = g.batch * g.m * g.n, group = caps.Group(64);
  Dispatch d{.source = &cl::kMatmulGeneral, .entry = "general"};
  const std::string type = IndexType(most);
  const bool wide = type == "long";
  d.defines = {{"T", std::string(Name(dtype))}, {"WIDE", SumType(dtype)}, {"IDX", type}};
  if (IsInteger(dtype)) d.defines.emplace_back("INTEGER", "1");
  d.args = {In{0}, In{1}};
  AddEpilogue(node, attrs.activation, d);
  d.args.push_back(Out{0});
  for (const int64_t v : {total, g.m, g.n, g.k, g.a_row, g.a_col, g.b_row, g.b_col}) {
    d.args.push_back(Index(v, wide));
  }
  AddBatch(BatchOf(g), wide, d);
  d.global = {RoundUp(total, group), 1, 1};
  d.local = {group, 1, 1};
  d.longest_loop = g.k;
  return Recipe{{std::move(d)}};
}

Recipe Tiled(const MatMulAttrs& attrs, const MatMulGeometry& g, const TileChoice& tile,
             const NodeView& node, int64_t most) {
  Dispatch d{.source = &cl::kMatmulTiled, .entry = "tiled"};
  const std::string type = IndexType(most);
  const bool wide = type == "long";
  d.defines = {{"T", std::string(Name(node.inputs[0].dtype))},
               {"IDX", type},
               {"A_ALONG", g.a_col == 1 ? "1" : "0"},
               {"B_ALONG", g.b_col == 1 ? "1" : "0"}};
  d.args = {In{0}, In{1}};
  AddEpilogue(node, attrs.activation, d);
  d.args.push_back(Out{0});
  AddTile(tile, d);
  for (const int64_t v : {g.m, g.n, g.k, g.a_row, g.a_col, g.b_row, g.b_col}) {
    d.args.push_back(Index(v, wide));
  }
  AddBatch(BatchOf(g), wide, d);
  d.global = {DivideUp(g.m, tile.rows()) * tile.threads_x,
              DivideUp(g.n, tile.columns()) * tile.threads_y, g.batch};
  d.longest_loop = std::max(DivideUp(g.k, tile.slice), tile.rows());
  return Recipe{{std::move(d)}};
}

// By the constant alone, like everything that decides about packing: weights of one column stay.
bool IsPacked(const MatMulAttrs& attrs, const Fact& b, const Capabilities& caps) {
  if (caps.shape != KernelShape::kCpu || !b.constant || !IsCarried(b.dtype)) return false;
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
    recipe.dispatches.push_back(MakePack(In{1}, b, node.inputs[1].dtype, matrices, matrix, g.b_row,
                                         g.b_col, g.k, g.n, caps));
  }
  PanelLaunch launch;
  launch.shape.run = g.k;
  launch.shape.tap_count = {1, 1, 1};
  launch.shape.tap_step = {0, 0, 0};
  launch.shape.line_rows = g.m;
  launch.shape.row_step = g.a_row;
  launch.shape.line_count = {1, 1, 1};
  launch.shape.line_step = {0, 0, 0};
  launch.shape.columns = g.n;
  launch.run_step = g.a_col;
  launch.row_y = g.n;
  launch.y_step = g.m * g.n;
  launch.batch = BatchOf(g);
  for (BatchAxes::Axis& axis : launch.batch.axes) axis.b_step = axis.b_step / matrix * elements;
  launch.products = g.batch;
  launch.most = std::max(most, matrices * elements);
  recipe.dispatches.push_back(MakePanels(launch, In{0}, b, node, attrs.activation, caps));
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
    if (packed || (caps.shape == KernelShape::kCpu && g.m > 1 && g.n > 1)) {
      return Panels(attrs, g, packed, node, most, caps);
    }
    const TileChoice tile = ChooseTile(g.m, g.n, g.batch, caps);
    if (caps.shape == KernelShape::kGpu && caps.local_groups && tile.threads_x > 0 && g.m > 1 &&
        g.n > 1) {
      return Tiled(attrs, g, tile, node, most);
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
  const int64_t count = desc.elements() / (k * n), elements = PackedElements(k, n, caps);
  const int64_t width = PanelColumns(caps);
  return Packing{StrCat("panels", width, attrs.transpose_b ? "t" : ""),
                 count * elements * BytesOf(desc.dtype),
                 [=](const Tensor& constant, std::span<std::byte> to) {
                   const auto pack = [&]<class T>(T*) {
                     for (int64_t i = 0; i < count; ++i) {
                       PackPanels(constant.As<T>().data() + i * k * n, row_step, column_step, k, n,
                                  width, reinterpret_cast<T*>(to.data()) + i * elements);
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

const KernelRow kRows[] = {
    Row<MatMul>("MatMul", kNumbers).Packs<PackWeights>(),
};

}  // namespace

std::span<const KernelRow> MatMulKernels() { return kRows; }

}  // namespace oncilla::opencl
