// MatMul: inference, geometry and row.
#include "engine/ops/math/matmul.h"

#include "engine/ops/math/activation.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

PartialShape BatchOf(const PartialShape& shape) {
  const auto& dims = shape.dims();
  return PartialShape(
      std::vector<Dim>(dims.begin(), dims.end() - std::min<size_t>(2, dims.size())));
}

Result<Facts> InferMatMul(const MatMulAttrs& attrs, std::span<const Fact> in) {
  const Fact &a = in[0], &b = in[1];
  ONCILLA_TRY(RequireNumber(a, "the first operand"));
  ONCILLA_TRY(RequireSameDType(in));
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  if (IsInteger(a.dtype) && activation != Activation::kNone && activation != Activation::kRelu &&
      activation != Activation::kRelu6) {
    return InvalidArgument("activation ", attrs.activation, " needs floating point, not ", a.dtype);
  }
  if (in.size() > 2 && !in[2].absent()) ONCILLA_TRY(RequireRank(in[2], 1, "bias"));
  ONCILLA_ASSIGN(PartialShape shape, MatMulShape(attrs, a, b));
  if (in.size() > 2 && !in[2].absent()) ONCILLA_TRY(CheckProductBias(in[2], b, shape));
  if (in.size() > 3 && !in[3].absent()) {
    auto merged = MergeShapes(shape, in[3].shape);
    if (!merged.ok()) return In(merged.status(), "residual and output differ in shape");
    shape = *std::move(merged);
  }
  return Facts{Fact::Of(a.dtype, std::move(shape))};
}

constexpr OpDef kMatMulOps[] = {
    Op<InferMatMul>("MatMul", {.inputs = {2, 4},
                               .axes = AxesBy(AxisRule::kProduct),
                               .storage = StorageRule::kStarts,
                               .work = Work::kProduct}),
};

}  // namespace

Result<PartialShape> MatMulShape(const MatMulAttrs& attrs, const Fact& a, const Fact& b) {
  for (const Fact* fact : {&a, &b}) {
    if (fact->shape.ranked() && fact->shape.rank() == 0) {
      return InvalidArgument("MatMul takes no scalars");
    }
  }
  if (!a.shape.ranked() || !b.shape.ranked()) return PartialShape();
  const int ar = a.shape.rank(), br = b.shape.rank();
  const Dim inner_a = a.shape[attrs.transpose_a && ar > 1 ? ar - 2 : ar - 1];
  const Dim inner_b = b.shape[br > 1 && !attrs.transpose_b ? br - 2 : br - 1];
  if (inner_a.known() && inner_b.known() && inner_a.size != inner_b.size) {
    return InvalidArgument("inner sizes differ: ", inner_a.size, " and ", inner_b.size, " (shapes ",
                           a.shape, " and ", b.shape, ")");
  }
  ONCILLA_ASSIGN(PartialShape batch, BroadcastShapes(BatchOf(a.shape), BatchOf(b.shape)));
  std::vector<Dim> dims = batch.dims();
  if (ar > 1) dims.push_back(a.shape[attrs.transpose_a ? ar - 1 : ar - 2]);
  if (br > 1) dims.push_back(b.shape[attrs.transpose_b ? br - 2 : br - 1]);
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size(), " is above ", kMaxRank);
  return PartialShape(std::move(dims));
}

Status CheckProductBias(const Fact& bias, const Fact& b, const PartialShape& shape) {
  if (b.shape.ranked() && b.shape.rank() == 1) {
    return InvalidArgument("a product with a vector has no last axis for a bias");
  }
  if (!shape.ranked() || !bias.shape.ranked()) return Status();
  const Dim columns = shape[shape.rank() - 1];
  if (bias.shape[0].known() && columns.known() && bias.shape[0].size != columns.size) {
    return InvalidArgument("bias has ", bias.shape[0].size, " elements for ", columns.size,
                           " columns");
  }
  return Status();
}

int64_t MatMulGeometry::BatchOffset(const Shape& dims, const Shape& steps, int64_t i) {
  int64_t offset = 0;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    offset += i % dims[axis] * steps[axis];
    i /= dims[axis];
  }
  return offset;
}

MatMulGeometry GeometryOf(const MatMulAttrs& attrs, const Shape& a, const Shape& b) {
  MatMulGeometry g;
  const int ar = a.rank(), br = b.rank();
  g.k = ar == 1 || !attrs.transpose_a ? a.back() : a[ar - 2];
  if (ar > 1) g.m = a[attrs.transpose_a ? ar - 1 : ar - 2];
  if (br > 1) g.n = b[attrs.transpose_b ? br - 2 : br - 1];
  const bool a_swapped = ar > 1 && attrs.transpose_a;
  g.a_row = a_swapped ? 1 : g.k;
  g.a_col = a_swapped ? g.m : 1;
  const bool b_swapped = br > 1 && attrs.transpose_b;
  g.b_row = b_swapped ? 1 : g.n;
  g.b_col = b_swapped ? g.k : 1;

  const int a_batch = std::max(0, ar - 2), b_batch = std::max(0, br - 2);
  const int axes = std::max(a_batch, b_batch);
  for (int axis = 0; axis < axes; ++axis) {
    const int at = axis - (axes - a_batch), bt = axis - (axes - b_batch);
    const int64_t as = at >= 0 ? a[at] : 1, bs = bt >= 0 ? b[bt] : 1;
    g.batch_dims.push_back(as == 1 ? bs : as);
    g.a_steps.push_back(as == 1 ? 0 : a.Product(at + 1, ar));
    g.b_steps.push_back(bs == 1 ? 0 : b.Product(bt + 1, br));
  }
  // If b is the same for all of the last batch axis and the rows of a continue with a constant
  // stride, that axis becomes rows of one taller matrix.
  while (g.batch_dims.rank() > 0) {
    const int last = g.batch_dims.rank() - 1;
    const int64_t size = g.batch_dims[last];
    const bool rows_go_on = g.m == 1 || g.a_steps[last] == g.m * g.a_row;
    if (size != 1 && (g.b_steps[last] != 0 || g.a_steps[last] == 0 || !rows_go_on)) break;
    if (size != 1) {
      if (g.m == 1) g.a_row = g.a_steps[last];
      g.m *= size;
    }
    g.batch_dims.Erase(last);
    g.a_steps.Erase(last);
    g.b_steps.Erase(last);
  }
  g.batch = g.batch_dims.elements();
  return g;
}

std::span<const OpDef> MatMulOps() { return kMatMulOps; }

}  // namespace oncilla
