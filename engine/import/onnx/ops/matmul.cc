// ONNX's matrix products.
#include "engine/import/lowering/einsum.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerMatMul(OnnxLowering& b) { return One(b.Add("MatMul", {}, {b.in(0), b.in(1)})); }

// alpha * A' * B' + beta * C, where C stretches to the product's shape.
Result<Values> LowerGemm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  if (b.version() < 7) b.Ignore("broadcast");  // C stretches in any case
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
  return One(b.Add("Add", {}, {y, c}));
}

Result<Values> LowerEquation(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string equation, b.String("equation", ""));
  return LowerEinsum(b, std::move(equation));
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
