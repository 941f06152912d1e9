// Recipes of exact arithmetic on quantised tensors: products of bytes by integer_product.h, all
// others with one work-item per element.
#include "engine/ops/nn/integer.h"

#include <algorithm>

#include "backends/opencl/recipes/integer_product.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/window_args.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

int64_t MostOf(const NodeView& node) {
  return std::max({node.inputs[0].desc().elements(), node.inputs[1].desc().elements(),
                   node.outputs[0].desc().elements()});
}

void AddTypes(const NodeView& node, IndexType index, DispatchBuilder& b) {
  b.Define({{"X", TypeName(node.inputs[0].dtype)},
            {"W", TypeName(node.inputs[1].dtype)},
            {"S", TypeName(SumType(node.inputs[0].dtype, BiasOf(node)))},
            {"Y", ResultType(node)},
            {"IDX", index.name()}});
}

Result<Recipe> ConvInteger(const ConvIntegerAttrs& attrs, const NodeView& node,
                           const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(AsConv(attrs), node));
  ONCILLA_TRY(CheckSizes(g));
  const int64_t total = node.outputs[0].desc().elements();
  if (total == 0) return Recipe();
  ONCILLA_ASSIGN(std::optional<Recipe> bytes, ByteConv(attrs, g, node, caps));
  if (bytes.has_value()) return *std::move(bytes);
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const int64_t group_step = WordMatrix(g.taps(), in_group, out_group);
  const bool words = InWords(attrs, node, caps);
  const auto is_byte = [](const Fact& fact) { return BytesOf(fact.dtype) == 1; };
  const bool quads = !words && in_group == 1 && out_group == 1 && g.in_channels % 4 == 0 &&
                     is_byte(node.inputs[0]) && is_byte(node.inputs[1]) &&
                     SumType(node.inputs[0].dtype, BiasOf(node)) == DType::kI32;
  const int64_t items = quads ? total / 4 : total;
  const IndexType index(std::max(MostOf(node), words ? 4 * g.groups * group_step : 0));
  DispatchBuilder b(cl::kConvInteger, "conv_integer", index);
  AddTypes(node, index, b);
  b.Arg("x", In{0}).Arg("filter", In{1});
  AddZerosAndBias(node, {"x_zero", "filter_zero"}, {"X_ZERO", "FILTER_ZERO"}, b);
  b.Arg("y", Out{0}).Index("total", items);
  b.Int({{"channels", g.in_channels}, {"out_channels", g.out_channels}});
  b.Int({{"in_group", in_group}, {"out_group", out_group}});
  if (words) b.Define("PACKED", "1").Index("group_step", group_step);
  if (quads) b.Define("QUADS", "1");
  AddWindow(g, b);
  AddEpilogue(attrs.epilogue, node, b);
  b.Items(items, caps.Group(TuningOf(caps).loop_group));
  return b.Loop(std::max(in_group, LongestAxis(g))).Alone();
}

Result<Recipe> MatMulInteger(const MatMulIntegerAttrs& attrs, const NodeView& node,
                             const Capabilities& caps) {
  const Shape a = node.inputs[0].desc().shape;
  const MatMulGeometry g = GeometryOf(AsMatMul(attrs), a, node.inputs[1].desc().shape);
  const int64_t total = g.batch * g.m * g.n;
  if (total == 0) return Recipe();
  ONCILLA_ASSIGN(std::optional<Recipe> bytes, ByteMatMul(attrs, g, node, caps));
  if (bytes.has_value()) return *std::move(bytes);
  const bool words = InWords(attrs, node, caps);
  BatchAxes batch = BatchOf(g);
  const int64_t matrix = WordMatrix(1, g.k, g.n);
  if (words) {
    for (BatchAxes::Axis& axis : batch.axes) axis.b_step = axis.b_step / (g.k * g.n) * matrix;
  }
  const int64_t packed = words ? node.inputs[1].desc().elements() / (g.k * g.n) * matrix * 4 : 0;
  const IndexType index(std::max(MostOf(node), packed));
  DispatchBuilder b(cl::kMatmulInteger, "matmul_integer", index);
  AddTypes(node, index, b);
  if (words) b.Define("PACKED", "1");
  b.Arg("a", In{0}).Arg("b", In{1});
  AddZerosAndBias(node, {"a_zero", "b_zero"}, {"A_ZERO", "B_ZERO"}, b);
  const int64_t rows = a.rank() < 2 ? 1 : a[a.rank() - (attrs.transpose_a ? 1 : 2)];
  b.Arg("y", Out{0}).Index("total", total).Index("rows", rows);
  b.Index({{"m", g.m}, {"n", g.n}, {"k", g.k}});
  b.Index({{"a_row", g.a_row}, {"a_col", g.a_col}, {"b_row", g.b_row}, {"b_col", g.b_col}});
  AddBatch(batch, b);
  AddEpilogue(attrs.epilogue, node, b);
  b.Items(total, caps.Group(TuningOf(caps).loop_group));
  return b.Loop(g.k).Alone();
}

Result<Recipe> Requantize(const RequantizeAttrs& attrs, const NodeView& node,
                          const Capabilities& caps) {
  const int64_t total = node.outputs[0].desc().elements();
  if (total == 0) return Recipe();
  const RequantizeSpan span =
      SpanOf(attrs, node.inputs[0].desc().shape, node.inputs[1].desc().shape);
  const IntegerRange range = RangeOf(attrs);
  const IndexType index(total);
  DispatchBuilder b(cl::kQuantizeRequantize, "requantize", index);
  b.Define(
      {{"X", TypeName(node.inputs[0].dtype)}, {"Y", TypeName(attrs.to)}, {"IDX", index.name()}});
  if (node.inputs[0].dtype == DType::kI64) b.Define("WIDE", "1");
  b.Arg("x", In{0}).Arg("scale", In{1});
  if (attrs.mode == "fixed") b.Define("FIXED", "1").Arg("shift", In{3});
  if (node.has_input(2)) b.Define("ZERO", "1").Arg("zero", In{2});
  b.Arg("y", Out{0}).Index({{"total", total}, {"count", span.count}, {"inner", span.inner}});
  b.Int({{"x_zero", attrs.x_zero}, {"left_shift", attrs.left_shift}});
  b.Int({{"least", range.least}, {"most", range.most}});
  return b.Flat(total, caps).Alone();
}

// The CPU's kernel checks computed shifts and refuses those out of range. A kernel on a device
// cannot fail in that way.
Status RequireConstantShifts(const std::string& mode, const NodeView& node, size_t input) {
  if (mode != "fixed" || node.inputs[input].constant) return Status();
  return Unsupported("opencl: shifts that are computed");
}
Status CanRequantize(const RequantizeAttrs& attrs, const NodeView& node, const Capabilities&) {
  return RequireConstantShifts(attrs.mode, node, 3);
}
template <class Attrs>
Status CanMultiply(const Attrs& attrs, const NodeView& node, const Capabilities&) {
  return RequireConstantShifts(attrs.epilogue.requantize, node, 7);
}

Result<Packing> PackConv(const ConvIntegerAttrs& attrs, const NodeView& node, int input,
                         const Capabilities& caps) {
  if (input == 1) return PackFilter(attrs, node, caps);
  return Packing{"dense", node.inputs[static_cast<size_t>(input)].desc().bytes(), nullptr};
}
Result<Packing> PackMatMul(const MatMulIntegerAttrs& attrs, const NodeView& node, int input,
                           const Capabilities& caps) {
  if (input == 1) return PackWeights(attrs, node, caps);
  return Packing{"dense", node.inputs[static_cast<size_t>(input)].desc().bytes(), nullptr};
}

constexpr DTypeSet kOperands = Set(DType::kU8) | Set(DType::kI8) | Set(DType::kI16);

const KernelRow kRows[] = {
    Row<ConvInteger>("ConvInteger", kOperands)
        .CanRun<CanMultiply<ConvIntegerAttrs>>()
        .Packs<PackConv>(),
    Row<MatMulInteger>("MatMulInteger", kOperands)
        .CanRun<CanMultiply<MatMulIntegerAttrs>>()
        .Packs<PackMatMul>(),
    Row<Requantize>("Requantize",
                    kOperands | Set(DType::kU16) | Set(DType::kI32) | Set(DType::kI64))
        .CanRun<CanRequantize>(),
};

}  // namespace

std::span<const KernelRow> IntegerKernels() { return kRows; }

}  // namespace oncilla::opencl
