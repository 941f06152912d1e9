// ONNX's Attention built from matrix products, softmax and elementwise ops, and the parts that
// other attention ops share with it.
#include "engine/import/onnx/ops/attention.h"

#include <cmath>
#include <limits>
#include <optional>

namespace oncilla {

Result<ValueId> SizeOf(OnnxLowering& b, ValueId x, int axis, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(x, axis, axis + 1, name + "_vector"));
  return b.Add("Squeeze", {}, {size, b.Ints({0})}, name);
}

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

Result<ValueId> PlacesOf(OnnxLowering& b, ValueId x, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId count, SizeOf(b, x, 2, name + "_count"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  return b.Add("Range", {}, {none, count, one}, name);
}

// The position of each query among the keys, as a column: [L, 1], or [N, 1, L, 1] if it differs
// between samples.
Result<ValueId> QueryPlaces(OnnxLowering& b, const HiddenKeys& rule, ValueId queries) {
  ONCILLA_ASSIGN(ValueId row, PlacesOf(b, queries, "row"));
  ONCILLA_ASSIGN(row, b.Unsqueeze(row, {1}, "rows_upright"));
  if (rule.start != kNoValue) {
    ONCILLA_ASSIGN(const ValueId start, b.Unsqueeze(rule.start, {1, 2, 3}, "start_upright"));
    return b.Add("Add", {}, {row, start}, "place");
  }
  if (rule.past != kNoValue) {
    ONCILLA_ASSIGN(const ValueId offset, SizeOf(b, rule.past, 2, "past"));
    return b.Add("Add", {}, {row, offset}, "place");
  }
  if (rule.valid == kNoValue) return row;
  ONCILLA_ASSIGN(const ValueId rows, SizeOf(b, queries, 2, "rows"));
  ONCILLA_ASSIGN(ValueId offset, b.Add("Sub", {}, {rule.valid, rows}, "before"));
  ONCILLA_ASSIGN(offset, b.Unsqueeze(offset, {1, 2, 3}, "before_upright"));
  return b.Add("Add", {}, {row, offset}, "place");
}

}  // namespace

Result<ValueId> SplitHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name) {
  if (heads < 1) return InvalidArgument("the number of heads is missing");
  ONCILLA_ASSIGN(const ValueId split, b.Add(ReshapeAttrs{.zero_copies = true},
                                            {x, b.Ints({0, 0, heads, -1})}, name + "_split"));
  return b.Transpose(split, {0, 2, 1, 3}, name + "_heads");
}

Result<ValueId> JoinHeads(OnnxLowering& b, ValueId x, std::string_view role) {
  ONCILLA_ASSIGN(x, b.Transpose(x, {0, 2, 1, 3}, "together"));
  const PartialShape shape = b.fact(x).shape;
  int64_t width = -1;
  if (shape.ranked() && shape[2].known() && shape[3].known()) {
    width = SaturatingMul(shape[2].size, shape[3].size);
  }
  return b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints({0, 0, width})}, role);
}

Result<int64_t> KnownSize(OnnxLowering& b, ValueId x, int axis, std::string_view what) {
  const PartialShape shape = b.fact(x).shape;
  if (shape.ranked() && shape.rank() == 4 && shape[axis].known()) return shape[axis].size;
  return Unsupported(what, " is not known");
}

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

Result<ValueId> AddHidden(OnnxLowering& b, const HiddenKeys& rule, ValueId queries, ValueId keys) {
  if (rule.nothing()) return kNoValue;
  ONCILLA_ASSIGN(const ValueId column, PlacesOf(b, keys, "column"));
  ValueId hidden = kNoValue;
  const auto hide = [&](Result<ValueId> more, const std::string& name) -> Status {
    if (!more.ok()) return more.status();
    if (hidden == kNoValue) {
      hidden = *more;
      return {};
    }
    ONCILLA_ASSIGN(hidden, b.Add("Or", {}, {hidden, *more}, name));
    return {};
  };
  if (rule.causal || rule.left >= 0 || rule.right >= 0) {
    ONCILLA_ASSIGN(const ValueId place, QueryPlaces(b, rule, queries));
    if (rule.causal) ONCILLA_TRY(hide(b.Add("Less", {}, {place, column}, "behind"), ""));
    if (rule.left >= 0) {
      const ValueId reach = b.Constant(Tensor::ScalarInt64(rule.left));
      ONCILLA_ASSIGN(const ValueId first, b.Add("Sub", {}, {place, reach}, "leftmost"));
      ONCILLA_TRY(hide(b.Add("Less", {}, {column, first}, "far_left"), "outside_left"));
    }
    if (rule.right >= 0) {
      const ValueId reach = b.Constant(Tensor::ScalarInt64(rule.right));
      ONCILLA_ASSIGN(const ValueId last, b.Add("Add", {}, {place, reach}, "rightmost"));
      ONCILLA_TRY(hide(b.Add("Less", {}, {last, column}, "far_right"), "outside_right"));
    }
  }
  if (rule.valid != kNoValue) {
    ONCILLA_ASSIGN(const ValueId count, b.Unsqueeze(rule.valid, {1, 2, 3}, "valid"));
    ONCILLA_TRY(hide(b.Add("GreaterEqual", {}, {column, count}, "padding"), "outside_valid"));
  }
  return hidden;
}

Result<ValueId> AddMaskBias(OnnxLowering& b, ValueId mask, ValueId hidden, DType dtype,
                            double off) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(dtype, off));
  if (mask != kNoValue && b.fact(mask).dtype == DType::kBool) {
    ONCILLA_ASSIGN(mask, b.Add("Where", {}, {mask, zero, least}, "mask"));
  } else if (mask != kNoValue) {
    ONCILLA_ASSIGN(mask, b.Cast(mask, dtype, "mask"));
  }
  if (hidden == kNoValue) return mask;
  return b.Add("Where", {}, {hidden, least, mask == kNoValue ? zero : mask}, "bias");
}

Status PlaceBehind(OnnxLowering& b, ValueId past, ValueId own, AttentionAttrs& attrs,
                   AttentionParts& parts) {
  const PartialShape &rows = b.fact(parts.q).shape, &fresh = b.fact(own).shape;
  // If there are as many queries as new keys, the last query is at the position of the last key.
  attrs.from_end = rows.ranked() && fresh.ranked() && rows[2].Same(fresh[2]);
  if (attrs.from_end) return {};
  ONCILLA_ASSIGN(const ValueId place, b.Sizes(past, 2, 3, "past_rows"));
  ONCILLA_ASSIGN(const ValueId samples, b.Sizes(parts.q, 0, 1, "samples"));
  ONCILLA_ASSIGN(parts.starts, b.Add("Expand", {}, {place, samples}, "starts"));
  return {};
}

Result<ValueId> AddAttention(OnnxLowering& b, const AttentionAttrs& attrs, AttentionParts parts,
                             std::string_view role) {
  if (parts.mask != kNoValue) {
    const PartialShape& shape = b.fact(parts.mask).shape;
    if (!shape.ranked()) return Unsupported("the rank of the mask is not known");
    std::vector<int64_t> axes;
    for (int64_t a = shape.rank(); a < 4; ++a) axes.push_back(a - shape.rank());
    if (!axes.empty()) {
      ONCILLA_ASSIGN(parts.mask, b.Unsqueeze(parts.mask, axes, "mask_by_head"));
    }
  }
  std::vector<ValueId> inputs = {parts.q,       parts.k,      parts.v,   parts.mask,
                                 parts.lengths, parts.starts, parts.sink};
  while (inputs.back() == kNoValue) inputs.pop_back();
  return b.Add(attrs, std::move(inputs), role);
}

namespace {

// Queries, keys and values by head, [N, heads, L, size]; keys and values include those of the past.
struct Heads {
  int rank = 4;
  int64_t count = 0;  // number of query heads
  ValueId q, k, v, own_key, present_key, present_value;
};

// There may be fewer heads of keys and values than of queries; several query heads then share one.
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
  if (b.has(4) && b.has(6)) {
    return InvalidArgument("nonpad_kv_seqlen does not go together with past_key");
  }
  h.own_key = h.k;
  if (b.has(4)) {
    const ConcatAttrs along = {.axis = 2};
    ONCILLA_ASSIGN(h.k, b.Add(along, {b.in(4), h.k}, "present_key"));
    ONCILLA_ASSIGN(h.v, b.Add(along, {b.in(5), h.v}, "present_value"));
  }
  h.present_key = h.k, h.present_value = h.v;
  return h;
}

// Q K^T * scale. With 16-bit numbers both operands are scaled by its square root, as the standard
// says, so that the product stays in range; otherwise a single multiplication is equivalent.
Result<ValueId> AddScores(OnnxLowering& b, const Heads& h) {
  double scale = 0;
  if (b.HasAttr("scale")) {
    ONCILLA_ASSIGN(scale, b.Float("scale", 1));
  } else {
    ONCILLA_ASSIGN(const int64_t size, KnownSize(b, h.q, 3, "the size of a head"));
    scale = 1 / std::sqrt(static_cast<double>(size));
  }
  ValueId q = h.q, k = h.k;
  const bool both = BitsOf(b.dtype()) == 16 && scale > 0;
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(), both ? std::sqrt(scale) : scale));
  ONCILLA_ASSIGN(q, b.Add("Mul", {}, {q, factor}, "scaled"));
  if (both) {
    ONCILLA_ASSIGN(k, b.Add("Mul", {}, {k, factor}, "scaled_keys"));
  }
  return b.Add(MatMulAttrs{.transpose_b = true}, {q, k}, "scores");
}

Result<ValueId> AddCap(OnnxLowering& b, ValueId scores) {
  ONCILLA_ASSIGN(const float softcap, b.Float("softcap", 0));
  if (!(softcap > 0)) return scores;
  ONCILLA_ASSIGN(const ValueId cap, b.Scalar(b.dtype(), double{softcap}));
  ONCILLA_ASSIGN(scores, b.Add("Div", {}, {scores, cap}, "part_of_cap"));
  ONCILLA_ASSIGN(scores, b.Add("Tanh", {}, {scores}, "bent"));
  return b.Add("Mul", {}, {scores, cap}, "capped");
}

// From opset 24 on, a mask that covers only the first keys hides the others.
Result<ValueId> WholeMask(OnnxLowering& b, ValueId mask, ValueId keys) {
  if (mask == kNoValue || b.version() < 24) return mask;
  ONCILLA_ASSIGN(const int rank, b.Rank(3, "the mask"));
  if (rank < 1) return mask;
  if (IsInteger(b.dtype(3))) {  // whose padding cannot be minus infinity
    ONCILLA_ASSIGN(mask, b.Cast(mask, b.dtype(), "real_mask"));
  }
  const Dim columns = b.fact(mask).shape[rank - 1];
  const PartialShape shape = b.fact(keys).shape;
  const Dim total = shape.ranked() ? shape[2] : Dim();
  if (columns.known() && total.known() && columns.size >= total.size) return mask;
  if (!columns.known() && !columns.name.empty() && columns.name == total.name) return mask;
  ONCILLA_ASSIGN(const ValueId all, b.Sizes(keys, 2, 3, "columns_in_all"));
  ONCILLA_ASSIGN(const ValueId own, b.Sizes(mask, rank - 1, rank, "columns_of_mask"));
  ONCILLA_ASSIGN(ValueId more, b.Add("Sub", {}, {all, own}, "columns_lacking"));
  ONCILLA_ASSIGN(more, b.Add("Max", {}, {more, b.Ints({0})}, "columns_added"));
  const ValueId before = b.Ints(std::vector<int64_t>(static_cast<size_t>(2 * rank - 1), 0));
  ONCILLA_ASSIGN(const ValueId pads, b.Add(ConcatAttrs{.axis = 0}, {before, more}, "mask_pads"));
  const DType dtype = b.fact(mask).dtype;
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, dtype == DType::kBool ? 0 : kMinusInfinity));
  return b.Add(PadAttrs{}, {mask, pads, off}, "whole_mask");
}

// The sum of all masks, to be added to the scores (kNoValue without masks), and whether a query may
// see no key at all.
struct Bias {
  ValueId value = kNoValue;
  bool may_blind = false;
};
Result<Bias> AddBias(OnnxLowering& b, const Heads& h) {
  HiddenKeys rule;
  ONCILLA_ASSIGN(rule.causal, b.Flag("is_causal", false));
  if (b.version() >= 25) {
    ONCILLA_ASSIGN(rule.left, b.Int("left_window_size", -1));
    ONCILLA_ASSIGN(rule.right, b.Int("right_window_size", -1));
    if (rule.left < -1 || rule.right < -1) {
      return InvalidArgument("a window of ", rule.left, " and ", rule.right, " keys");
    }
  }
  rule.past = b.in(4);
  rule.valid = b.in(6);
  Bias bias;
  bias.may_blind = b.has(3) || b.has(6) || rule.left >= 0 || rule.right >= 0;
  ONCILLA_ASSIGN(const ValueId mask, WholeMask(b, b.in(3), h.k));
  ONCILLA_ASSIGN(const ValueId hidden, AddHidden(b, rule, h.q, h.k));
  ONCILLA_ASSIGN(bias.value, AddMaskBias(b, mask, hidden, b.dtype(), kMinusInfinity));
  return bias;
}

// The softmax of the scores. A query that sees no key because of the masks gets zeros.
Result<ValueId> AddWeights(OnnxLowering& b, ValueId scores, const Bias& bias) {
  const DType dtype = b.dtype();
  ONCILLA_ASSIGN(const DType precision, b.Type("softmax_precision", dtype));
  if (!IsFloat(precision)) return InvalidArgument("softmax_precision is ", precision);
  ONCILLA_ASSIGN(scores, b.Cast(scores, precision, "in_precision"));
  ONCILLA_ASSIGN(ValueId weights, b.Add("Softmax", {}, {scores}, "softmax"));
  ONCILLA_ASSIGN(weights, b.Cast(weights, dtype, "weights"));
  if (!bias.may_blind) return weights;
  ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", ReduceAttrs{.keep_dims = true},
                                           {bias.value, b.Ints({-1})}, "largest_bias"));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(dtype, kMinusInfinity));
  ONCILLA_ASSIGN(const ValueId blind, b.Add("Equal", {}, {most, off}, "blind"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(dtype, 0));
  return b.Add("Where", {}, {blind, zero, weights}, "seen");
}

// Uses the canonical Attention op. Returns nothing if an output is requested that only the separate
// stages compute.
Result<std::optional<Values>> LowerWhole(OnnxLowering& b, const Heads& h) {
  AttentionAttrs attrs;
  ONCILLA_ASSIGN(attrs.scale, b.Float("scale", 1));
  ONCILLA_ASSIGN(attrs.softcap, b.Float("softcap", 0));
  ONCILLA_ASSIGN(const DType precision, b.Type("softmax_precision", b.dtype()));
  ONCILLA_ASSIGN(const bool causal, b.Flag("is_causal", false));
  const bool scaled = std::isfinite(attrs.scale) && attrs.scale != 0;
  const bool precise = precision == b.dtype() || precision == DType::kF32;
  if (b.wants(3) || !scaled || !precise || !std::isfinite(attrs.softcap) ||
      (precision == DType::kF32 && b.dtype() == DType::kF64)) {
    return std::optional<Values>();
  }
  if (!b.HasAttr("scale")) attrs.scale = 0;
  attrs.softcap = std::max(attrs.softcap, 0.0);
  if (b.version() >= 25) {
    ONCILLA_ASSIGN(attrs.left, b.Int("left_window_size", -1));
    ONCILLA_ASSIGN(attrs.right, b.Int("right_window_size", -1));
  }
  if (causal) attrs.right = 0;
  attrs.from_end = b.has(6);
  attrs.zero_blind = true;
  AttentionParts parts{h.q, h.k, h.v};
  if (b.has(4) && (attrs.left >= 0 || attrs.right >= 0)) {
    ONCILLA_TRY(PlaceBehind(b, b.in(4), h.own_key, attrs, parts));
  }
  ONCILLA_ASSIGN(const ValueId mask, WholeMask(b, b.in(3), h.k));
  ONCILLA_ASSIGN(parts.mask, AddMaskBias(b, mask, kNoValue, b.dtype(), kMinusInfinity));
  parts.lengths = b.in(6);
  ONCILLA_ASSIGN(ValueId y, AddAttention(b, attrs, parts, h.rank == 3 ? "by_head" : ""));
  if (h.rank == 3) {
    ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  }
  return std::optional<Values>(Values{y, h.present_key, h.present_value});
}

// softmax(Q K^T * scale, with softcap, + masks) V, by head. The fourth output is an intermediate
// result, which qk_matmul_output_mode selects.
Result<Values> LowerAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t mode, b.Int("qk_matmul_output_mode", 0));
  ONCILLA_ASSIGN(Heads h, ReadHeads(b));
  ONCILLA_ASSIGN(auto whole, LowerWhole(b, h));
  if (whole) return *std::move(whole);
  ONCILLA_ASSIGN(h.k, ShareHeads(b, h.k, h.count, "k"));
  ONCILLA_ASSIGN(h.v, ShareHeads(b, h.v, h.count, "v"));
  Values stages(4);
  ONCILLA_ASSIGN(stages[0], AddScores(b, h));
  ONCILLA_ASSIGN(stages[1], AddCap(b, stages[0]));
  ONCILLA_ASSIGN(const Bias bias, AddBias(b, h));
  stages[2] = stages[1];
  if (bias.value != kNoValue) {
    ONCILLA_ASSIGN(stages[2], b.Add("Add", {}, {stages[1], bias.value}, "biased"));
  }
  ONCILLA_ASSIGN(stages[3], AddWeights(b, stages[2], bias));
  ONCILLA_ASSIGN(ValueId y, b.Add("MatMul", {}, {stages[3], h.v}, h.rank == 3 ? "by_head" : ""));
  if (h.rank == 3) {
    ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  }
  if (mode < 0 || mode > 3) return InvalidArgument("qk_matmul_output_mode is ", mode);
  return Values{y, h.present_key, h.present_value, stages[static_cast<size_t>(mode)]};
}

constexpr OnnxOpRow kRows[] = {
    {"Attention", 23, kNewestOnnxOpset, 3, "", LowerAttention},
};

}  // namespace

std::span<const OnnxOpRow> OnnxAttentionRows() { return kRows; }

}  // namespace oncilla
