// ONNX's Attention and RotaryEmbedding, out of matrix products, softmax and elementwise ops.
#include <cmath>
#include <limits>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// [N, L, heads * size] as [N, heads, L, size].
Result<ValueId> SplitHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name) {
  if (heads < 1) return InvalidArgument("q_num_heads or kv_num_heads is missing");
  ONCILLA_ASSIGN(const ValueId split, b.Add(ReshapeAttrs{.zero_copies = true},
                                            {x, b.Ints({0, 0, heads, -1})}, name + "_split"));
  return b.Transpose(split, {0, 2, 1, 3}, name + "_heads");
}

Result<int64_t> KnownSize(OnnxLowering& b, ValueId x, int axis, std::string_view what) {
  const PartialShape& shape = b.fact(x).shape;
  if (shape.ranked() && shape.rank() == 4 && shape[axis].known()) return shape[axis].size;
  return Unsupported(what, " is not known");
}

// Keys or values [N, kv heads, S, size], each head as often as queries share it.
Result<ValueId> ShareHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name) {
  ONCILLA_ASSIGN(const int64_t own, KnownSize(b, x, 1, "the number of heads"));
  if (own == heads) return x;
  if (own < 1 || heads % own != 0) {
    return InvalidArgument(heads, " heads of queries cannot share ", own, " of keys and values");
  }
  ONCILLA_ASSIGN(const int64_t size, KnownSize(b, x, 3, "the size of a head"));
  ONCILLA_ASSIGN(const ValueId apart, b.Unsqueeze(x, {2}, name + "_apart"));
  ONCILLA_ASSIGN(const ValueId shared,
                 b.Add("Expand", {}, {apart, b.Ints({1, 1, heads / own, 1, 1})}, name + "_shared"));
  return b.Add(ReshapeAttrs{.zero_copies = true}, {shared, b.Ints({0, heads, -1, size})},
               name + "_per_head");
}

// The size of an axis as a number of rank 0.
Result<ValueId> SizeOf(OnnxLowering& b, ValueId x, int axis, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(x, axis, axis + 1, name + "_vector"));
  return b.Add("Squeeze", {}, {size, b.Ints({0})}, name);
}

// What is added to the scores of a query for keys behind it: [L, S] of zeros and minus infinities.
Result<ValueId> CausalBias(OnnxLowering& b, ValueId queries, ValueId keys, ValueId past,
                           DType dtype) {
  ONCILLA_ASSIGN(const ValueId rows, SizeOf(b, queries, 2, "rows"));
  ONCILLA_ASSIGN(const ValueId columns, SizeOf(b, keys, 2, "columns"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId row, b.Add("Range", {}, {none, rows, one}, "row"));
  ONCILLA_ASSIGN(const ValueId column, b.Add("Range", {}, {none, columns, one}, "column"));
  if (past != kNoValue) {
    ONCILLA_ASSIGN(const ValueId offset, SizeOf(b, past, 2, "past"));
    ONCILLA_ASSIGN(row, b.Add("Add", {}, {row, offset}, "place"));
  }
  ONCILLA_ASSIGN(row, b.Unsqueeze(row, {1}, "rows_upright"));
  ONCILLA_ASSIGN(const ValueId hidden, b.Add("Less", {}, {row, column}, "behind"));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, kMinusInfinity));
  ONCILLA_ASSIGN(const ValueId on, b.Scalar(dtype, 0));
  return b.Add("Where", {}, {hidden, off, on}, "causal");
}

// Queries, keys and values by head, [N, heads, L, size]; the keys and values with those before.
struct Heads {
  int rank = 4;
  int64_t count = 0;  // of queries
  ValueId q, k, v, present_key, present_value;
};

Result<Heads> ReadHeads(OnnxLowering& b) {
  Heads h;
  ONCILLA_ASSIGN(h.count, b.Int("q_num_heads", 0));
  ONCILLA_ASSIGN(const int64_t own, b.Int("kv_num_heads", 0));
  ONCILLA_ASSIGN(h.rank, b.Rank(0));
  if (h.rank != 3 && h.rank != 4) return InvalidArgument("Q must have rank 3 or 4, not ", h.rank);
  h.q = b.in(0), h.k = b.in(1), h.v = b.in(2);
  if (h.rank == 3) {
    ONCILLA_ASSIGN(h.q, SplitHeads(b, h.q, h.count, "q"));
    ONCILLA_ASSIGN(h.k, SplitHeads(b, h.k, own, "k"));
    ONCILLA_ASSIGN(h.v, SplitHeads(b, h.v, own, "v"));
  } else {
    ONCILLA_ASSIGN(h.count, KnownSize(b, h.q, 1, "the number of heads"));
  }
  if (b.has(4) != b.has(5)) return InvalidArgument("past_key and past_value go together");
  if (b.has(4)) {
    const ConcatAttrs along = {.axis = 2};
    ONCILLA_ASSIGN(h.k, b.Add(along, {b.in(4), h.k}, "present_key"));
    ONCILLA_ASSIGN(h.v, b.Add(along, {b.in(5), h.v}, "present_value"));
  }
  h.present_key = h.k, h.present_value = h.v;
  ONCILLA_ASSIGN(h.k, ShareHeads(b, h.k, h.count, "k"));
  ONCILLA_ASSIGN(h.v, ShareHeads(b, h.v, h.count, "v"));
  return h;
}

// Q K^T * scale.
Result<ValueId> AddScores(OnnxLowering& b, const Heads& h) {
  double scale = 0;
  if (b.HasAttr("scale")) {
    ONCILLA_ASSIGN(scale, b.Float("scale", 1));
  } else {
    ONCILLA_ASSIGN(const int64_t size, KnownSize(b, h.q, 3, "the size of a head"));
    scale = 1 / std::sqrt(static_cast<double>(size));
  }
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), scale));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {h.q, factor}, "scaled"));
  return b.Add(MatMulAttrs{.transpose_b = true}, {scaled, h.k}, "scores");
}

Result<ValueId> AddCap(OnnxLowering& b, ValueId scores) {
  ONCILLA_ASSIGN(const float softcap, b.Float("softcap", 0));
  if (softcap == 0) return scores;
  ONCILLA_ASSIGN(const ValueId cap, b.Scalar(b.dtype(), double{softcap}));
  ONCILLA_ASSIGN(scores, b.Add("Div", {}, {scores, cap}, "part_of_cap"));
  ONCILLA_ASSIGN(scores, b.Add("Tanh", {}, {scores}, "bent"));
  return b.Add("Mul", {}, {scores, cap}, "capped");
}

// What masks add to the scores; none without them.
Result<ValueId> AddBias(OnnxLowering& b, const Heads& h) {
  const DType dtype = b.dtype();
  ValueId bias = b.in(3);
  if (bias != kNoValue && b.dtype(3) == DType::kBool) {
    ONCILLA_ASSIGN(const ValueId on, b.Scalar(dtype, 0));
    ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, kMinusInfinity));
    ONCILLA_ASSIGN(bias, b.Add("Where", {}, {bias, on, off}, "mask"));
  } else if (bias != kNoValue) {
    ONCILLA_ASSIGN(bias, b.Cast(bias, dtype, "mask"));
  }
  ONCILLA_ASSIGN(const bool causal, b.Flag("is_causal", false));
  if (!causal) return bias;
  ONCILLA_ASSIGN(const ValueId future, CausalBias(b, h.q, h.k, b.in(4), dtype));
  return bias == kNoValue ? future : b.Add("Add", {}, {bias, future}, "bias");
}

// The softmax of the scores; a query that by the masks may see no key gets zeros.
Result<ValueId> AddWeights(OnnxLowering& b, ValueId scores, ValueId bias) {
  const DType dtype = b.dtype();
  ONCILLA_ASSIGN(const DType precision, b.Type("softmax_precision", dtype));
  if (!IsFloat(precision)) return InvalidArgument("softmax_precision is ", precision);
  ONCILLA_ASSIGN(scores, b.Cast(scores, precision, "in_precision"));
  ONCILLA_ASSIGN(ValueId weights, b.Add("Softmax", {}, {scores}, "softmax"));
  ONCILLA_ASSIGN(weights, b.Cast(weights, dtype, "weights"));
  if (!b.has(3)) return weights;
  ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", ReduceAttrs{.keep_dims = true},
                                           {bias, b.Ints({-1})}, "largest_bias"));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, kMinusInfinity));
  ONCILLA_ASSIGN(const ValueId blind, b.Add("Equal", {}, {most, off}, "blind"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
  return b.Add("Where", {}, {blind, zero, weights}, "seen");
}

// softmax(Q K^T * scale, softcapped, + masks) V, by head. The fourth output is a stage of it.
Result<Values> LowerAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t mode, b.Int("qk_matmul_output_mode", 0));
  ONCILLA_ASSIGN(const Heads h, ReadHeads(b));
  Values stages(4);
  ONCILLA_ASSIGN(stages[0], AddScores(b, h));
  ONCILLA_ASSIGN(stages[1], AddCap(b, stages[0]));
  ONCILLA_ASSIGN(const ValueId bias, AddBias(b, h));
  stages[2] = stages[1];
  if (bias != kNoValue) {
    ONCILLA_ASSIGN(stages[2], b.Add("Add", {}, {stages[1], bias}, "biased"));
  }
  ONCILLA_ASSIGN(stages[3], AddWeights(b, stages[2], bias));
  ONCILLA_ASSIGN(ValueId y, b.Add("MatMul", {}, {stages[3], h.v}, h.rank == 3 ? "by_head" : ""));
  if (h.rank == 3) {
    ONCILLA_ASSIGN(y, b.Transpose(y, {0, 2, 1, 3}, "together"));
    ONCILLA_ASSIGN(y, b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, -1})}));
  }
  const ValueId shown = stages[mode >= 1 && mode <= 3 ? static_cast<size_t>(mode) : 0];
  return Values{y, h.present_key, h.present_value, shown};
}

// Part of x's last axis.
Result<ValueId> Part(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, int64_t step,
                     const std::string& name) {
  return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({-1}), b.Ints({step})},
               name);
}

// Pairs of numbers of each head turned by an angle that grows with the place.
Result<Values> LowerRotaryEmbedding(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool interleaved, b.Flag("interleaved", false));
  ONCILLA_ASSIGN(const int64_t heads, b.Int("num_heads", 0));
  ONCILLA_ASSIGN(int64_t turned, b.Int("rotary_embedding_dim", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 3 && rank != 4) return InvalidArgument("X must have rank 3 or 4, not ", rank);
  ValueId x = b.in(0);
  if (rank == 3) {
    if (heads < 1) return InvalidArgument("num_heads is missing");
    ONCILLA_ASSIGN(
        x, b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints({0, 0, heads, -1})}, "heads"));
  }
  ONCILLA_ASSIGN(const int64_t size, KnownSize(b, x, 3, "the size of a head"));
  if (turned == 0) turned = size;
  if (turned < 0 || turned > size || turned % 2 != 0) {
    return InvalidArgument("rotary_embedding_dim is ", turned, " of ", size);
  }
  // Cosines and sines as [N, L, half], stretched over the heads.
  ValueId waves[2] = {b.in(1), b.in(2)};
  for (int i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "cosine" : "sine";
    if (b.has(3)) {
      ONCILLA_ASSIGN(waves[i], b.Add("Gather", {}, {waves[i], b.in(3)}, name + "_at"));
    }
    ONCILLA_ASSIGN(waves[i], b.Unsqueeze(waves[i], {rank == 3 ? 2 : 1}, name));
  }
  const int64_t half = turned / 2, step = interleaved ? 2 : 1;
  ONCILLA_ASSIGN(const ValueId first, Part(b, x, 0, interleaved ? turned : half, step, "first"));
  ONCILLA_ASSIGN(const ValueId second, Part(b, x, interleaved ? 1 : half, turned, step, "second"));
  const auto product = [&](ValueId part, int wave, const char* name) {
    return b.Add("Mul", {}, {part, waves[wave]}, name);
  };
  ONCILLA_ASSIGN(const ValueId a, product(first, 0, "first_cosine"));
  ONCILLA_ASSIGN(const ValueId c, product(second, 1, "second_sine"));
  ONCILLA_ASSIGN(const ValueId d, product(first, 1, "first_sine"));
  ONCILLA_ASSIGN(const ValueId e, product(second, 0, "second_cosine"));
  ONCILLA_ASSIGN(ValueId real, b.Add("Sub", {}, {a, c}, "real"));
  ONCILLA_ASSIGN(ValueId imaginary, b.Add("Add", {}, {d, e}, "imaginary"));
  Values parts = {real, imaginary};
  if (interleaved) {
    for (ValueId& part : parts) {
      ONCILLA_ASSIGN(part, b.Unsqueeze(part, {4}, "upright"));
    }
    ONCILLA_ASSIGN(const ValueId pairs, b.Add(ConcatAttrs{.axis = 4}, parts, "pairs"));
    ONCILLA_ASSIGN(const ValueId rows, b.Add(ReshapeAttrs{.zero_copies = true},
                                             {pairs, b.Ints({0, 0, 0, turned})}, "in_turn"));
    parts = {rows};
  }
  if (turned < size) {
    ONCILLA_ASSIGN(const ValueId rest, Part(b, x, turned, size, 1, "rest"));
    parts.push_back(rest);
  }
  ValueId y = parts[0];
  if (parts.size() > 1) {
    ONCILLA_ASSIGN(y, b.Add(ConcatAttrs{.axis = -1}, parts, "turned"));
  }
  if (rank == 4) return One(b.Add("Identity", {}, {y}));
  return One(b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, -1})}));
}

constexpr OnnxOpRow kRows[] = {
    {"Attention", 23, 23, 3, "", LowerAttention},
    {"RotaryEmbedding", 23, kNewestOnnxOpset, 3, "", LowerRotaryEmbedding},
};

}  // namespace

std::span<const OnnxOpRow> OnnxAttentionRows() { return kRows; }

}  // namespace oncilla
