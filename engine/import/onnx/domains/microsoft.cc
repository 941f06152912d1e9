// Ops of com.microsoft that ONNX Runtime's optimiser leaves in exported models: fused activations,
// normalisations fused with the addition before them, products and convolutions fused with what
// follows them.
#include <cmath>

#include "engine/import/onnx/ops/norm.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

Result<Values> LowerGelu(OnnxLowering& b) { return One(b.Add(GeluAttrs{}, {b.in(0)})); }

// Gelu of the sum of the inputs; FastGelu uses the approximation with tanh.
Result<Values> LowerBiasGelu(OnnxLowering& b) {
  ValueId x = b.in(0);
  if (b.has(1)) {
    ONCILLA_ASSIGN(x, b.Add("Add", {}, {x, b.in(1)}, "biased"));
  }
  return One(b.Add(GeluAttrs{.approximate = b.op() == "FastGelu"}, {x}));
}

Result<Values> LowerQuickGelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1.702f));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{alpha}));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {b.in(0), factor}, "scaled"));
  ONCILLA_ASSIGN(const ValueId gate, b.Add("Sigmoid", {}, {scaled}, "gate"));
  return One(b.Add("Mul", {}, {b.in(0), gate}));
}

// The second output is the reciprocal of the root mean square.
Result<Values> LowerSimplifiedLayerNorm(OnnxLowering& b) {
  b.Ignore("stash_type");
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  const LayerNormAttrs attrs = {.axis = axis, .epsilon = epsilon};
  ONCILLA_ASSIGN(const ValueId y, b.Add("RmsNorm", attrs, {b.in(0), b.in(1)}));
  if (!b.wants(1)) return Values{y, kNoValue};
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const NormStatistics found,
                 AddNormStatistics(b, b.in(0), rank, axis, double{epsilon}, false));
  return Values{y, found.inverse};
}

// The layer norm of input + skip (+ bias). Further outputs are the mean, the reciprocal of the
// standard deviation, and the sum. 16-bit numbers are added and normalised in float. The simplified
// op subtracts no mean, and ONNX Runtime reports a mean of 0.
Result<Values> LowerSkipLayerNorm(OnnxLowering& b) {
  const bool simplified = b.op() == "SkipSimplifiedLayerNormalization";
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-12f));
  const DType dtype = b.dtype(), wide = BitsOf(dtype) == 16 ? DType::kF32 : dtype;
  Values in;  // input, skip, gamma, beta and bias
  constexpr size_t kPlaces[2][5] = {{0, 1, 2, 3, 4}, {0, 1, 2, 99, 3}};
  for (size_t i = 0; i < 5; ++i) {
    ValueId x = b.in(kPlaces[simplified][i]);
    if (x != kNoValue) {
      ONCILLA_ASSIGN(x, b.Cast(x, wide, StrCat("wide", i)));
    }
    in.push_back(x);
  }
  ONCILLA_ASSIGN(ValueId sum, b.Add("Add", {}, {in[0], in[1]}, "sum"));
  if (in[4] != kNoValue) {
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, in[4]}, "biased"));
  }
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = epsilon};
  Values inputs = {sum, in[2]};
  if (!simplified) inputs.push_back(in[3]);
  ONCILLA_ASSIGN(ValueId y, b.Add(simplified ? "RmsNorm" : "LayerNorm", attrs, std::move(inputs),
                                  wide == dtype ? "" : "wide_y"));
  ONCILLA_ASSIGN(y, b.Cast(y, dtype, ""));
  ONCILLA_ASSIGN(const ValueId shown, b.Cast(sum, dtype, "shown_sum"));
  if (!b.wants(1) && !b.wants(2)) return Values{y, kNoValue, kNoValue, shown};
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(NormStatistics found,
                 AddNormStatistics(b, sum, rank, -1, double{epsilon}, !simplified));
  if (simplified && b.wants(1)) {
    ONCILLA_ASSIGN(const ValueId shape, b.Sizes(found.inverse, 0, rank, "statistics_shape"));
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
    ONCILLA_ASSIGN(found.mean, b.Add("Expand", {}, {zero, shape}, "no_mean"));
  }
  return Values{y, found.mean, found.inverse, shown};
}

// The values of an embedding, gamma or beta of EmbedLayerNormalization. For
// QEmbedLayerNormalization they are bytes; scales begin at input 8 and zero points at 13, in the
// order of the five tables.
Result<ValueId> Embedded(OnnxLowering& b, ValueId x, size_t table, const std::string& name) {
  if (b.op() != "QEmbedLayerNormalization") return b.Cast(x, DType::kF32, name + "_wide");
  const size_t scale = 8 + table, zero = 13 + table;
  if (!b.has(scale) || !b.has(zero)) return DataLoss("the scale of table ", table, " is missing");
  ONCILLA_ASSIGN(const ValueId real, b.Cast(x, DType::kF32, name + "_real"));
  ONCILLA_ASSIGN(const ValueId point, b.Cast(b.in(zero), DType::kF32, name + "_zero"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Sub", {}, {real, point}, name + "_moved"));
  return b.Add("Mul", {}, {moved, b.in(scale)}, name + "_scaled");
}

// Looks up word, position and segment embeddings, and adds and normalises them in float. Also
// returns how many words of each sample the mask leaves.
Result<Values> LowerEmbedLayerNorm(OnnxLowering& b) {
  const bool bytes = b.op() == "QEmbedLayerNormalization";
  if (!bytes) b.Ignore("mask_index_type");
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-12f));
  if (!b.has(2) || !b.has(3) || !b.has(5) || !b.has(6)) {
    return DataLoss("an embedding, gamma or beta is missing");
  }
  const GatherAttrs rows = {.axis = 0, .negative_indices = false};
  ONCILLA_ASSIGN(ValueId sum, b.Add(rows, {b.in(2), b.in(0)}, "words"));
  ONCILLA_ASSIGN(sum, Embedded(b, sum, 0, "words"));
  ValueId places = bytes ? kNoValue : b.in(8);
  if (places == kNoValue) {
    ONCILLA_ASSIGN(ValueId count, b.Sizes(b.in(0), 1, 2, "count"));
    ONCILLA_ASSIGN(count, b.Add("Squeeze", {}, {count, b.Ints({0})}, "length"));
    const ValueId none = b.Constant(Tensor::ScalarInt64(0));
    const ValueId one = b.Constant(Tensor::ScalarInt64(1));
    ONCILLA_ASSIGN(places, b.Add("Range", {}, {none, count, one}, "places"));
  }
  ONCILLA_ASSIGN(ValueId placed, b.Add(rows, {b.in(3), places}, "placed"));
  ONCILLA_ASSIGN(placed, Embedded(b, placed, 1, "placed"));
  ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, placed}, "words_and_places"));
  if (b.has(1) && !b.has(4)) return InvalidArgument("segment ids without their embedding");
  if (b.has(4)) {
    // Without ids, all words belong to the first segment.
    const ValueId ids = b.has(1) ? b.in(1) : b.Constant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(ValueId segments, b.Add(rows, {b.in(4), ids}, "segments"));
    ONCILLA_ASSIGN(segments, Embedded(b, segments, 2, "segments"));
    ONCILLA_ASSIGN(sum, b.Add("Add", {}, {sum, segments}, "embedding_sum"));
  }
  ONCILLA_ASSIGN(const ValueId gamma, Embedded(b, b.in(5), 3, "gamma"));
  ONCILLA_ASSIGN(const ValueId beta, Embedded(b, b.in(6), 4, "beta"));
  const DType dtype = bytes ? DType::kF32 : b.dtype(2);
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = epsilon};
  ONCILLA_ASSIGN(ValueId y,
                 b.Add("LayerNorm", attrs, {sum, gamma, beta}, dtype == DType::kF32 ? "" : "wide"));
  ONCILLA_ASSIGN(y, b.Cast(y, dtype, ""));
  ONCILLA_ASSIGN(sum, b.Cast(sum, dtype, "narrow_sum"));
  if (!b.wants(1)) return Values{y, kNoValue, sum};
  ValueId mask = b.in(7);
  if (mask == kNoValue) {
    ONCILLA_ASSIGN(mask, b.Cast(b.in(0), DType::kI32, "no_mask"));
    const ValueId none = b.Constant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(const ValueId zero, b.Cast(none, DType::kI32, "zero"));
    ONCILLA_ASSIGN(mask, b.Add("Mul", {}, {mask, zero}, "masked"));
  }
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(b.fact(mask).dtype, 1));
  ONCILLA_ASSIGN(const ValueId kept, b.Add("Equal", {}, {mask, one}, "kept"));
  ONCILLA_ASSIGN(const ValueId number, b.Cast(kept, DType::kI32, "kept_number"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                            {number, b.Ints({1})}, "mask_index"));
  return Values{y, count, sum};
}

// alpha * an activation of (beta * x).
Result<ValueId> AddScaledCurve(OnnxLowering& b, ValueId x, const char* curve,
                               const std::vector<float>& params, std::string_view role) {
  if (params.size() != 2) return DataLoss("activation_alpha or activation_beta is missing");
  const DType dtype = b.fact(x).dtype;
  ONCILLA_ASSIGN(const ValueId alpha, b.Scalar(dtype, double{params[0]}));
  ONCILLA_ASSIGN(const ValueId beta, b.Scalar(dtype, double{params[1]}));
  ONCILLA_ASSIGN(ValueId y, b.Add("Mul", {}, {x, beta}, "steep"));
  ONCILLA_ASSIGN(y, b.Add(curve, {}, {y}, "curve"));
  return b.Add("Mul", {}, {y, alpha}, role);
}

// An activation by ONNX's name, with up to two parameters.
Result<ValueId> AddActivation(OnnxLowering& b, ValueId x, const std::string& name,
                              const std::vector<float>& params, std::string_view role) {
  const auto param = [&](size_t i, float otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (name.empty()) return b.Add("Identity", {}, {x}, role);
  for (const char* plain : {"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish"}) {
    if (name == plain) return b.Add(plain, {}, {x}, role);
  }
  if (name == "LeakyRelu") return b.Add(name, AlphaAttrs{param(0, 0.01f)}, {x}, role);
  if (name == "Elu" || name == "Celu" || name == "ThresholdedRelu") {
    return b.Add(name, AlphaAttrs{param(0, 1)}, {x}, role);
  }
  if (name == "ScaledTanh") return AddScaledCurve(b, x, "Tanh", params, role);
  if (name == "ParametricSoftplus") return AddScaledCurve(b, x, "Softplus", params, role);
  if (name == "HardSigmoid") {
    return b.Add(HardSigmoidAttrs{param(0, 0.2f), param(1, 0.5f)}, {x}, role);
  }
  if (name == "Clip" && params.size() == 2) {
    ONCILLA_ASSIGN(const ValueId least, b.Scalar(b.fact(x).dtype, double{params[0]}));
    ONCILLA_ASSIGN(const ValueId most, b.Scalar(b.fact(x).dtype, double{params[1]}));
    return b.Add("Clip", {}, {x, least, most}, role);
  }
  return Unsupported("with the activation ", name);
}

// For NhwcFusedConv the input, the added tensor and the result are channels-last; the filter has
// ONNX's layout.
Result<Values> LowerFusedConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  b.Ignore("kernel_shape");  // repeats the filter's shape
  ONCILLA_ASSIGN(const std::string activation, b.String("activation", ""));
  ONCILLA_ASSIGN(const std::vector<float> params, b.FloatList("activation_params"));
  std::vector<int64_t> perm;
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.insert(perm.end(), {1, 0});
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), std::move(perm), "filter"));
  const bool last = b.op() == "NhwcFusedConv";
  ValueId x = b.in(0);
  if (!last) {
    ONCILLA_ASSIGN(x, b.ChannelsLast(x, rank));
  }
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {x, filter, b.in(2)}, "inner"));
  if (!last) {
    ONCILLA_ASSIGN(y, b.ChannelsFirst(y, rank, "convolved"));
  }
  if (b.has(3)) {
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(3)}, "sum"));
  }
  return One(AddActivation(b, y, activation, params, ""));
}

Result<Values> LowerFusedGemm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  ONCILLA_ASSIGN(const std::string activation, b.String("activation", ""));
  std::vector<float> params;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (!b.HasAttr(name)) break;
    ONCILLA_ASSIGN(const float value, b.Float(name, 0));
    params.push_back(value);
  }
  b.Ignore("activation_beta");
  b.Ignore("activation_gamma");
  const MatMulAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {b.in(0), b.in(1)}, "product"));
  if (alpha != 1) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{alpha}));
    ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, factor}, "alpha"));
  }
  if (b.has(2) && beta != 0) {
    ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{beta}));
    ONCILLA_ASSIGN(const ValueId c, b.Add("Mul", {}, {b.in(2), factor}, "beta"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, c}, "sum"));
  }
  return One(AddActivation(b, y, activation, params, ""));
}

// An operand of FusedMatMul whose batch axes come after the rows, [M, batch.., K], transposed to
// [batch.., M, K].
Result<ValueId> BatchFirst(OnnxLowering& b, size_t input, const char* flag) {
  ONCILLA_ASSIGN(const bool behind, b.Flag(flag, false));
  if (!behind) return b.in(input);
  ONCILLA_ASSIGN(const int rank, b.Rank(input, "an operand"));
  if (rank < 3) return InvalidArgument(flag, " with an operand of rank ", rank);
  std::vector<int64_t> perm;
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  perm.insert(perm.end(), {0, int64_t{rank} - 1});
  return b.Transpose(b.in(input), std::move(perm), StrCat("batch_first", input));
}

Result<Values> LowerFusedMatMul(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  ONCILLA_ASSIGN(const ValueId left, BatchFirst(b, 0, "transBatchA"));
  ONCILLA_ASSIGN(const ValueId right, BatchFirst(b, 1, "transBatchB"));
  const MatMulAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {left, right}, alpha == 1 ? "" : "product"));
  if (alpha == 1) return Values{y};
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), double{alpha}));
  return One(b.Add("Mul", {}, {y, factor}));
}

// MaxPool on an input whose channels are last already, so that it needs no transposes.
Result<Values> LowerNhwcMaxPool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  MaxPoolAttrs attrs = {window.As<PoolWindow>()};
  ONCILLA_ASSIGN(attrs.kernel, OnnxSpatialList(b, "kernel_shape", rank - 2));
  ONCILLA_ASSIGN(attrs.ceil, b.Flag("ceil_mode", false));
  return One(b.Add(attrs, {b.in(0)}));
}

Result<Values> LowerGemmFastGelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(ValueId y, b.Add("MatMul", {}, {b.in(0), b.in(1)}, "product"));
  if (b.has(2)) {
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(2)}, "biased"));
  }
  return One(b.Add(GeluAttrs{.approximate = true}, {y}));
}

// x * scale * sigmoid(x * scale); the scale is an input or an attribute.
Result<Values> LowerScaledSilu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ValueId scale = b.in(1);
  if (scale == kNoValue) {
    ONCILLA_ASSIGN(scale, b.Scalar(b.dtype(), double{alpha}));
  } else {
    ONCILLA_ASSIGN(scale, b.Cast(scale, b.dtype(), "scale"));
    ONCILLA_ASSIGN(scale, b.ToScalar(scale, "factor"));
  }
  ONCILLA_ASSIGN(const ValueId x, b.Add("Mul", {}, {b.in(0), scale}, "scaled"));
  return One(b.Add("Silu", {}, {x}));
}

Result<Values> LowerGatedAdd(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId gated, b.Add("Mul", {}, {b.in(1), b.in(2)}, "gated"));
  return One(b.Add("Add", {}, {b.in(0), gated}));
}

// The root-mean-square norm over each C numbers of x, where C is the length of the scale, times an
// activation of the gate; computed in float.
Result<Values> LowerGatedRmsNorm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const std::string activation, b.String("activation", "silu"));
  if (activation != "silu" && activation != "swish" && activation != "sigmoid") {
    return InvalidArgument("activation is '", activation, "'");
  }
  const PartialShape shape = b.in_fact(1).shape;
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (!shape.ranked() || shape.rank() != 1 || !shape[0].known() || shape[0].size < 1) {
    return Unsupported("with a scale of the shape ", shape);
  }
  ONCILLA_ASSIGN(ValueId x, b.Cast(b.in(0), DType::kF32, "x"));
  ONCILLA_ASSIGN(const ValueId scale, b.Cast(b.in(1), DType::kF32, "scale"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Sizes(x, 0, rank, "sizes"));
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{}, {x, b.Ints({-1, shape[0].size})}, "parts"));
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = epsilon};
  ONCILLA_ASSIGN(x, b.Add("RmsNorm", attrs, {x, scale}, "norm"));
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{}, {x, sizes}, "together"));
  ONCILLA_ASSIGN(ValueId gate, b.Cast(b.in(2), DType::kF32, "gate"));
  ONCILLA_ASSIGN(gate, b.Add(activation == "sigmoid" ? "Sigmoid" : "Silu", {}, {gate}, "open"));
  const bool narrow = b.dtype() != DType::kF32;
  ONCILLA_ASSIGN(const ValueId y, b.Add("Mul", {}, {x, gate}, narrow ? "wide" : ""));
  return narrow ? One(b.Cast(y, b.dtype(), "")) : Result<Values>(Values{y});
}

// The distances of all rows of a from all rows of b, as |a|^2 - 2 a b' + |b|^2 like ONNX Runtime,
// so that no differences of rows are stored in memory.
Result<Values> LowerCDist(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string metric, b.String("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean") return Unsupported("by ", metric);
  const ReduceAttrs keep = {.keep_dims = true};
  ONCILLA_ASSIGN(const ValueId own,
                 b.Add("ReduceSumSquare", keep, {b.in(0), b.Ints({1})}, "a_sum"));
  ONCILLA_ASSIGN(const ValueId other, b.Add("ReduceSumSquare", ReduceAttrs{.keep_dims = false},
                                            {b.in(1), b.Ints({1})}, "b_sum"));
  ONCILLA_ASSIGN(ValueId y,
                 b.Add(MatMulAttrs{.transpose_b = true}, {b.in(0), b.in(1)}, "products"));
  ONCILLA_ASSIGN(const ValueId minus_two, b.Scalar(b.dtype(), -2));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, minus_two}, "mixed"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, own}, "with_a"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, other}, "with_b"));
  const bool root = metric == "euclidean";
  ONCILLA_ASSIGN(y, b.Add("Relu", {}, {y}, root ? "square" : ""));  // rounding may give negatives
  return root ? One(b.Add("Sqrt", {}, {y})) : Result<Values>(Values{y});
}

Result<Values> LowerTrilu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool upper, b.Flag("upper", true));
  return One(b.Add(TriluAttrs{.upper = upper}, {b.in(0), b.in(1)}));
}

// ONNX Runtime writes this op in the domain of ONNX, which does not define it.
constexpr OnnxOpRow kStandardRows[] = {
    {"SimplifiedLayerNormalization", 1, kNewestOnnxOpset, 2, "", LowerSimplifiedLayerNorm},
};
constexpr OnnxOpRow kRows[] = {
    {"BiasGelu", 1, kNewestOnnxMicrosoft, 2, "", LowerBiasGelu},
    {"CDist", 1, kNewestOnnxMicrosoft, 2, "", LowerCDist},
    {"EmbedLayerNormalization", 1, kNewestOnnxMicrosoft, 1, "", LowerEmbedLayerNorm},
    {"FastGelu", 1, kNewestOnnxMicrosoft, 1, "", LowerBiasGelu},
    {"FusedConv", 1, kNewestOnnxMicrosoft, 2, "", LowerFusedConv},
    {"FusedGemm", 1, kNewestOnnxMicrosoft, 2, "", LowerFusedGemm},
    {"FusedMatMul", 1, kNewestOnnxMicrosoft, 2, "", LowerFusedMatMul},
    {"GatedAdd", 1, kNewestOnnxMicrosoft, 3, "", LowerGatedAdd},
    {"GatedRMSNorm", 1, kNewestOnnxMicrosoft, 3, "", LowerGatedRmsNorm},
    {"Gelu", 1, kNewestOnnxMicrosoft, 1, "", LowerGelu},
    {"GemmFastGelu", 1, kNewestOnnxMicrosoft, 2, "", LowerGemmFastGelu},
    {"Inverse", 1, kNewestOnnxMicrosoft, 1, "MatrixInverse"},
    {"NhwcFusedConv", 1, kNewestOnnxMicrosoft, 2, "", LowerFusedConv},
    {"NhwcMaxPool", 1, kNewestOnnxMicrosoft, 1, "", LowerNhwcMaxPool},
    {"QEmbedLayerNormalization", 1, kNewestOnnxMicrosoft, 1, "", LowerEmbedLayerNorm},
    {"QuickGelu", 1, kNewestOnnxMicrosoft, 1, "", LowerQuickGelu},
    {"ScaledSiLU", 1, kNewestOnnxMicrosoft, 1, "", LowerScaledSilu},
    {"SimplifiedLayerNormalization", 1, kNewestOnnxMicrosoft, 2, "", LowerSimplifiedLayerNorm},
    {"SkipLayerNormalization", 1, kNewestOnnxMicrosoft, 3, "", LowerSkipLayerNorm},
    {"SkipSimplifiedLayerNormalization", 1, kNewestOnnxMicrosoft, 3, "", LowerSkipLayerNorm},
    {"TransposeMatMul", 1, kNewestOnnxMicrosoft, 2, "", LowerFusedMatMul},
    {"Trilu", 1, kNewestOnnxMicrosoft, 1, "", LowerTrilu},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftStandardRows() { return kStandardRows; }
std::span<const OnnxOpRow> MicrosoftRows() { return kRows; }

}  // namespace oncilla
