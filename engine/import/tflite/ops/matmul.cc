// TFLite's matrix products.
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

// The product of quantised integers; weights may have a scale for each unit.
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

// The sums in i64 of products of 16-bit integers, which f64 represents exactly.
Result<ValueId> AddWideSums(TfliteLowering& b, ValueId x, ValueId y, const MatMulAttrs& attrs) {
  ONCILLA_ASSIGN(const ValueId wide_x, b.Cast(x, DType::kF64, "wide0"));
  ONCILLA_ASSIGN(const ValueId wide_y, b.Cast(y, DType::kF64, "wide1"));
  ONCILLA_ASSIGN(const ValueId exact, b.Add(attrs, {wide_x, wide_y}, "exact"));
  return b.Cast(exact, DType::kI64, "sums");
}

// Whether both operands and the result are quantised to 16 bits, with one scale each and the zero
// point 0.
bool IsWideProduct(const TfliteLowering& b) {
  for (const TfliteTensor* tensor : {&b.tensor(0), &b.tensor(1), &b.output_tensor()}) {
    if (!IsQuantised(*tensor) || !CheckTfliteScales(*tensor).ok() ||
        tensor->quantization.scale.size() != 1 || TfliteZeroOf(*tensor) != 0) {
      return false;
    }
  }
  return b.dtype(0) == DType::kI16 && b.dtype(1) == DType::kI16 && b.output_type() == DType::kI16;
}

// x times the transposed weights [units, depth]. Without keep_num_dims, x of any shape is treated
// as rows of `depth` numbers.
Result<Values> LowerFullyConnected(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(0));
  ONCILLA_ASSIGN(const int64_t format, b.Enum(1));
  ONCILLA_ASSIGN(const bool keep, b.Flag(2));
  ONCILLA_ASSIGN(const bool asymmetric, b.Flag(3));
  b.Ignore(4), b.Ignore(5);  // these concern quantised tensors
  if (format != 0) return Unsupported("weights in the shuffled format");
  const bool hybrid = IsTfliteHybrid(b, 0, 1), integers = b.any_quantised() && !hybrid;
  // Activations stay real numbers beside weights with scales of blocks, which LiteRT quantises.
  const bool blocks = hybrid && b.tensor(1).quantization.block != 0;
  if (hybrid && !blocks) {
    ONCILLA_TRY(CheckTfliteHybrid(b, 1));
    if (b.tensor(1).quantization.scale.size() > 1 && b.tensor(1).quantization.axis != 0) {
      return Unsupported("with scales along axis ", b.tensor(1).quantization.axis);
    }
  } else if (integers && !IsWideProduct(b)) {
    ONCILLA_TRY(CheckTfliteProduct(b, 0, 1, 2, true));
  } else if (!integers && !blocks && (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kF32)) {
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
  if (integers && b.dtype(1) == DType::kI16) {
    ONCILLA_ASSIGN(ValueId sums, AddWideSums(b, x, b.in(1), {.transpose_b = true}));
    if (bias != kNoValue) {
      ONCILLA_ASSIGN(bias, b.Cast(bias, DType::kI64, "wide_bias"));
      ONCILLA_ASSIGN(sums, b.Add("Add", {}, {sums, bias}, "biased"));
    }
    return One(TfliteRequantised(b, sums, TfliteFactors(b, 0, 1, true), activation));
  }
  if (integers) return AddIntegerProduct(b, x, bias, activation);
  if (hybrid && !blocks) {
    const MatMulIntegerAttrs attrs = {.transpose_b = true};
    return TfliteHybridProduct(b, x, attrs, bias, asymmetric, activation);
  }
  if (blocks) {
    // Alone, so that the product reads the weights as they are stored.
    ONCILLA_ASSIGN(const ValueId w, TfliteBlocksDequantised(b, 1, b.in(1), kNoValue, "weights"));
    const std::string_view inner = b.Inner(activation), role = bias == kNoValue ? inner : "product";
    ONCILLA_ASSIGN(ValueId y, b.Add(MatMulAttrs{.transpose_b = true}, {x, w}, role));
    if (bias != kNoValue) {
      ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, bias}, inner));
    }
    return One(b.Activated(y, activation));
  }
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

// Each row of x is quantised separately, so the rows must be contiguous.
Result<Values> AddHybridBatchMatMul(TfliteLowering& b, MatMulIntegerAttrs attrs, bool asymmetric) {
  ONCILLA_TRY(CheckTfliteHybrid(b, 1));
  const TfliteQuantization& q = b.tensor(1).quantization;
  const PartialShape shape = b.in_fact(0).shape, weights = b.in_fact(1).shape;
  if (!shape.ranked() || shape.rank() < 2 || !weights.ranked() || weights.rank() < 2) {
    return Unsupported("of ", shape, " and ", weights);
  }
  if (q.scale.size() > 1 && q.axis != weights.rank() - (attrs.transpose_b ? 2 : 1)) {
    return Unsupported("with scales along axis ", q.axis);
  }
  ValueId x = b.in(0);
  if (attrs.transpose_a) {
    std::vector<int64_t> perm;
    for (int i = 0; i < shape.rank(); ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    ONCILLA_ASSIGN(x, b.Add("Transpose", {}, {x, b.Ints(perm)}, "rows"));
    attrs.transpose_a = false;
  }
  return TfliteHybridProduct(b, x, attrs, kNoValue, asymmetric, 0);
}

// The product of quantised integers with one scale each. As in LiteRT, no zero point is subtracted
// if the operands have 8 bits and the result has 32.
Result<Values> LowerQuantisedBatchMatMul(TfliteLowering& b) {
  ONCILLA_ASSIGN(const bool adj_x, b.Flag(0));
  ONCILLA_ASSIGN(const bool adj_y, b.Flag(1));
  ONCILLA_ASSIGN(const bool asymmetric, b.Flag(2));
  const DType x = b.dtype(0), y = b.dtype(1), to = b.output_type();
  const MatMulIntegerAttrs attrs = {.transpose_a = adj_x, .transpose_b = adj_y};
  if (IsTfliteHybrid(b, 0, 1)) return AddHybridBatchMatMul(b, attrs, asymmetric);
  if (x == DType::kI8 && y == DType::kI8 && to == DType::kI32) {
    return One(b.Add(attrs, {b.in(0), b.in(1)}));
  }
  const bool bytes = x == DType::kI8 && y == DType::kI8;
  const bool wide = x == DType::kI16 && (y == DType::kI8 || y == DType::kI16);
  if ((!bytes && !wide) || to != x || !IsQuantised(b.tensor(0)) || !IsQuantised(b.tensor(1)) ||
      !IsQuantised(b.output_tensor())) {
    return Unsupported("of ", x, " and ", y, " to ", to);
  }
  for (const TfliteTensor* tensor : {&b.tensor(0), &b.tensor(1), &b.output_tensor()}) {
    ONCILLA_TRY(CheckTfliteScales(*tensor));
    if (tensor->quantization.scale.size() != 1) return Unsupported("with a scale for each column");
    if (wide && TfliteZeroOf(*tensor) != 0) {
      return Unsupported("integers of 16 bits with the zero point ", TfliteZeroOf(*tensor));
    }
  }
  ValueId sums = kNoValue;
  if (y == DType::kI8) {
    ONCILLA_ASSIGN(const ValueId x_zero, TfliteZero(b, 0));
    ONCILLA_ASSIGN(const ValueId y_zero, TfliteZero(b, 1));
    ONCILLA_ASSIGN(sums, b.Add(attrs, {b.in(0), b.in(1), x_zero, y_zero}, "sums"));
  } else {
    const MatMulAttrs wide_attrs = {.transpose_a = adj_x, .transpose_b = adj_y};
    ONCILLA_ASSIGN(sums, AddWideSums(b, b.in(0), b.in(1), wide_attrs));
  }
  return One(TfliteRequantised(b, sums, TfliteFactors(b, 0, 1, true), 0));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"BATCH_MATMUL", 2, Options::kBatchMatMul, "", LowerBatchMatMul, TfliteQuantised::kTaken,
     LowerQuantisedBatchMatMul},
    {"FULLY_CONNECTED", 2, Options::kFullyConnected, "", LowerFullyConnected,
     TfliteQuantised::kTaken},
};

}  // namespace

std::span<const TfliteOpRow> TfliteMatMulRows() { return kRows; }

}  // namespace oncilla
