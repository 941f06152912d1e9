// TensorFlow's matrix products.
#include "engine/import/lowering/einsum.h"
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

// TensorFlow refuses vectors, which the canonical op would multiply: here, or at run time if the
// rank is unknown.
Status CheckMatrices(TfLowering& b) {
  for (size_t i = 0; i < 2; ++i) {
    const PartialShape& shape = b.in_fact(i).shape;
    if (shape.ranked() && shape.rank() >= 2) continue;
    const std::string what = StrCat("operand ", i, " must have at least two axes and ");
    if (shape.ranked()) return InvalidArgument(what, "is ", shape);
    const std::string name = StrCat("operand", i);
    ONCILLA_ASSIGN(const ValueId rank, b.Add(RankAttrs{}, {b.in(i)}, name + "_rank"));
    ONCILLA_ASSIGN(const ValueId two, b.Scalar(b.fact(rank).dtype, 2));
    ONCILLA_ASSIGN(const ValueId enough, b.Add("GreaterEqual", {}, {rank, two}, name + "_enough"));
    const ValueId text = b.Constant(Tensor::Strings({}, {what + "has"}));
    ONCILLA_TRY(b.AddAll("Assert", {}, {enough, text, rank}, name + "_check").status());
  }
  return Status();
}

Result<Values> LowerMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  return One(b.Add(MatMulAttrs{.transpose_a = transpose_a, .transpose_b = transpose_b},
                   {b.in(0), b.in(1)}));
}

Result<Values> LowerBatchMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool adj_x, b.attrs().Bool("adj_x"));
  ONCILLA_ASSIGN(const bool adj_y, b.attrs().Bool("adj_y"));
  const MatMulAttrs attrs = {.transpose_a = adj_x, .transpose_b = adj_y};
  ValueId x = b.in(0), y = b.in(1);
  if (b.op() == "BatchMatMulV3") {
    // Operands of a narrow type are widened first, since the sums would not fit it.
    ONCILLA_ASSIGN(const DType result, b.attrs().Type("Tout"));
    ONCILLA_ASSIGN(x, b.Cast(x, result, "wide_x"));
    ONCILLA_ASSIGN(y, b.Cast(y, result, "wide_y"));
  }
  return One(b.Add(attrs, {x, y}));
}

Result<Values> LowerFusedMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  ONCILLA_ASSIGN(const std::vector<std::string> fused, b.attrs().Strings("fused_ops"));
  ONCILLA_ASSIGN(ValueId y,
                 b.Add(MatMulAttrs{.transpose_a = transpose_a, .transpose_b = transpose_b},
                       {b.in(0), b.in(1)}, fused.empty() ? "" : "matmul"));
  size_t arg = 2;
  for (size_t i = 0; i < fused.size(); ++i) {
    const std::string role = i + 1 == fused.size() ? "" : "fused" + std::to_string(i);
    if (fused[i] == "BiasAdd") {
      if (arg >= b.inputs()) return DataLoss("the input for ", fused[i], " is missing");
      ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(arg++)}, role));
    } else if (fused[i] == "Relu" || fused[i] == "Relu6" || fused[i] == "Elu" ||
               fused[i] == "Tanh" || fused[i] == "Sigmoid") {
      ONCILLA_ASSIGN(y, b.Add(fused[i], {}, {y}, role));
    } else if (fused[i] == "LeakyRelu") {
      ONCILLA_ASSIGN(const float alpha, b.attrs().Float("leakyrelu_alpha"));
      ONCILLA_ASSIGN(y, b.Add("LeakyRelu", AlphaAttrs{.alpha = alpha}, {y}, role));
    } else if (fused[i] == "GeluExact" || fused[i] == "GeluApproximate") {
      ONCILLA_ASSIGN(y, b.Add(GeluAttrs{.approximate = fused[i] == "GeluApproximate"}, {y}, role));
    } else {
      return Unsupported("the fused op ", fused[i]);
    }
  }
  return Values{y};
}

Result<Values> LowerEquation(TfLowering& b) {
  ONCILLA_ASSIGN(std::string equation, b.attrs().String("equation"));
  return LowerEinsum(b, std::move(equation), LabelSizes::kEqual);
}

constexpr TfOpRow kRows[] = {
    {"BatchMatMul", 2, "", LowerBatchMatMul},
    {"BatchMatMulV2", 2, "", LowerBatchMatMul},
    {"BatchMatMulV3", 2, "", LowerBatchMatMul},
    {"Einsum", 1, "", LowerEquation},
    {"MatMul", 2, "", LowerMatMul},
    {"_FusedMatMul", 2, "", LowerFusedMatMul},
};

}  // namespace

std::span<const TfOpRow> TfMatMulRows() { return kRows; }

}  // namespace oncilla
