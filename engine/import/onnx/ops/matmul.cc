// ONNX's matrix products.
#include "engine/import/lowering/einsum.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerMatMul(OnnxLowering& b) { return One(b.Add("MatMul", {}, {b.in(0), b.in(1)})); }

enum class Stretch { kNever, kAlways, kPerRun };

// Whether `c` broadcasts to `product`, a matrix, without enlarging it.
Stretch StretchesTo(const PartialShape& c, const PartialShape& product) {
  if (!c.ranked() || !product.ranked()) return Stretch::kPerRun;
  if (c.rank() > product.rank()) return Stretch::kNever;
  Stretch answer = Stretch::kAlways;
  for (int i = 0; i < c.rank(); ++i) {
    const Dim &from = c[i], &to = product[product.rank() - c.rank() + i];
    if (from.Same(to)) continue;
    if (from.known() && from.size == 1) continue;
    if (from.known() && to.known()) return Stretch::kNever;
    // An addition that succeeds enlarges only axes of size one, so this axis keeps its size.
    if (to.known() && to.size != 1) continue;
    answer = Stretch::kPerRun;
  }
  return answer;
}

// product + c, with the product's shape.
Result<Values> AddOneWay(OnnxLowering& b, ValueId product, ValueId c) {
  const PartialShape from = b.fact(c).shape, to = b.fact(product).shape;
  const Stretch stretch = StretchesTo(from, to);
  if (stretch == Stretch::kNever) {
    return InvalidArgument("C of shape ", from, " does not stretch to the product's shape ", to);
  }
  if (stretch == Stretch::kAlways) return One(b.Add("Add", {}, {product, c}));
  // If the sum is larger than the product, reshaping it to the product's shape fails the run.
  ONCILLA_ASSIGN(const ValueId sum, b.Add("Add", {}, {product, c}, "sum"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Sizes(product, 0, 2, "sizes_of_product"));
  return One(b.Add(ReshapeAttrs{}, {sum, sizes}));
}

// alpha * A' * B' + beta * C, where C broadcasts to the product's shape.
Result<Values> LowerGemm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  if (b.version() < 7) b.Ignore("broadcast");  // C broadcasts in any case
  for (size_t i = 0; i < 2; ++i) {
    ONCILLA_ASSIGN(const int rank, b.Rank(i));
    if (rank != 2) return InvalidArgument("input ", i, " must be a matrix, not of rank ", rank);
  }
  const MatMulAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  const bool adds = b.has(2) && beta != 0;
  const bool last = !adds && alpha == 1;
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {b.in(0), b.in(1)}, last ? "" : "product"));
  if (alpha != 1) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{alpha}));
    ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, factor}, adds ? "alpha" : ""));
  }
  if (!adds) return Values{y};
  ValueId c = b.in(2);
  if (beta != 1) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(2), double{beta}));
    ONCILLA_ASSIGN(c, b.Add("Mul", {}, {c, factor}, "beta"));
  }
  return AddOneWay(b, y, c);
}

Result<Values> LowerEquation(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string equation, b.String("equation", ""));
  return LowerEinsum(b, std::move(equation), LabelSizes::kStretch);
}

constexpr OnnxOpRow kRows[] = {
    {"Det", 11, kNewestOnnxOpset, 1, "MatrixDeterminant"},
    {"Einsum", 12, kNewestOnnxOpset, 1, "", LowerEquation},
    {"Gemm", 1, kNewestOnnxOpset, 2, "", LowerGemm},
    {"MatMul", 1, kNewestOnnxOpset, 2, "", LowerMatMul},
};

}  // namespace

std::span<const OnnxOpRow> OnnxMatMulRows() { return kRows; }

}  // namespace oncilla
