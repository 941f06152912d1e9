// TFLite's matrix products.
#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {
namespace {

// The same of quantised integers; weights may have a scale for each unit.
Result<Values> AddIntegerProduct(TfliteLowering& b, ValueId x, ValueId bias, int64_t activation) {
  const TfliteQuantization& weights = b.tensor(1).quantization;
  if (weights.scale.size() > 1 && weights.axis != 0) {
    return Unsupported("with scales along axis ", weights.axis);
  }
  ONCILLA_ASSIGN(const ValueId x_zero, TfliteZero(b, 0));
  ONCILLA_ASSIGN(const ValueId zero, TfliteZero(b, 1));
  ONCILLA_ASSIGN(const ValueId sums, b.Add(MatMulIntegerAttrs{.transpose_b = true},
                                           {x, b.in(1), x_zero, zero, bias}, "sums"));
  const auto factors = TfliteFactors(b, 0, 1, weights.scale.size() == 1);
  return One(TfliteRequantised(b, sums, factors, activation));
}

// x times the transposed weights [units, depth]. Without keep_num_dims x is taken as rows of
// `depth` numbers, whatever its shape.
Result<Values> LowerFullyConnected(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  ONCILLA_ASSIGN(const int64_t format, b.Enum(1));
  ONCILLA_ASSIGN(const bool keep, b.Flag(2));
  b.Ignore(3), b.Ignore(4), b.Ignore(5);  // these speak of quantised tensors
  if (format != 0) return Unsupported("weights in the shuffled format");
  const bool integers = b.any_quantised();
  if (integers) {
    ONCILLA_TRY(CheckTfliteProduct(b, 0, 1, 2));
  } else if (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kF32) {
    return Unsupported("of ", b.dtype(0), " with weights of ", b.dtype(1));
  }
  const PartialShape weights = b.in_fact(1).shape;
  if (!weights.ranked() || weights.rank() != 2) {
    return Unsupported("weights of the shape ", weights);
  }
  ValueId x = b.in(0), bias = kNoValue;
  const PartialShape shape = b.in_fact(0).shape;
  const bool rows = shape.ranked() && shape.rank() == 2 && shape[1].Same(weights[1]);
  if (!keep && !rows) {
    if (!weights[1].known() || weights[1].size < 1) {
      return Unsupported("weights of the shape ", weights);
    }
    ONCILLA_ASSIGN(x, b.Add("Reshape", {}, {x, b.Ints({-1, weights[1].size})}, "rows"));
  }
  if (b.has(2)) {
    ONCILLA_ASSIGN(bias, b.Add("Reshape", {}, {b.in(2), b.Ints({-1})}, "bias"));
  }
  if (integers) return AddIntegerProduct(b, x, bias, activation);
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(MatMulAttrs{.transpose_b = true}, {x, b.in(1), bias}, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

Result<Values> LowerBatchMatMul(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool adj_x, b.Flag(0));
  ONCILLA_ASSIGN(const bool adj_y, b.Flag(1));
  b.Ignore(2);  // how a product with quantised weights rounds
  if (b.dtype(0) != b.dtype(1)) return Unsupported("of ", b.dtype(0), " and ", b.dtype(1));
  for (size_t i = 0; i < 2; ++i) {
    const PartialShape& shape = b.in_fact(i).shape;
    if (shape.ranked() && shape.rank() >= 2) continue;
    return Unsupported("operand ", i, " of the shape ", shape);
  }
  return One(b.Add(MatMulAttrs{.transpose_a = adj_x, .transpose_b = adj_y}, {b.in(0), b.in(1)}));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"BATCH_MATMUL", 2, Options::kBatchMatMul, "", LowerBatchMatMul},
    {"FULLY_CONNECTED", 2, Options::kFullyConnected, "", LowerFullyConnected,
     TfliteQuantised::kTaken},
};

}  // namespace

std::span<const TfliteOpRow> TfliteMatMulRows() { return kRows; }

}  // namespace oncilla
