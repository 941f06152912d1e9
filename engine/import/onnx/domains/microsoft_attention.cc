// Attention ops of com.microsoft for encoders, and for decoders with separate caches.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/import/onnx/ops/attention.h"
#include "engine/import/onnx/ops/quantize.h"

namespace oncilla {
namespace {

// The keys that a mask of rank 1 leaves visible, as [N, 1, 1, S]. For each sample the mask gives
// the end of its keys, [N]; the ends and the beginnings, [2N]; or the ends and the offsets at which
// each sample's queries and keys begin in packed rows, [3N + 2]. Of the last form, ONNX Runtime's
// CPU provider reads only the ends.
Result<ValueId> SeenWithin(OnnxLowering& b, size_t input, ValueId keys) {
  const PartialShape shape = b.in_fact(input).shape, batch = b.in_fact(0).shape;
  if (!shape.ranked() || !shape[0].known() || !batch.ranked() || !batch[0].known()) {
    return Unsupported("with a mask of ranges for an unknown number of samples");
  }
  const int64_t samples = batch[0].size, numbers = shape[0].size;
  if (numbers != samples && numbers != 2 * samples && numbers != 3 * samples + 2) {
    return InvalidArgument("a mask of ", numbers, " numbers for ", samples, " samples");
  }
  const auto hidden_from = [&](int64_t begin, const char* name) -> Result<ValueId> {
    ONCILLA_ASSIGN(ValueId places, b.Cast(b.in(input), DType::kI64, name));
    if (numbers != samples) {
      ONCILLA_ASSIGN(
          places,
          b.Add("Slice", {}, {places, b.Ints({begin}), b.Ints({begin + samples}), b.Ints({0})},
                StrCat(name, "_of_samples")));
    }
    HiddenKeys rule;
    rule.valid = places;
    return AddHidden(b, rule, keys, keys);
  };
  ONCILLA_ASSIGN(ValueId seen, hidden_from(0, "ends"));
  ONCILLA_ASSIGN(seen, b.Add("Not", {}, {seen}, "before_end"));
  if (numbers != 2 * samples) return seen;
  ONCILLA_ASSIGN(const ValueId begun, hidden_from(samples, "begins"));
  return b.Add("And", {}, {seen, begun}, "seen");
}

// A key mask as a bias that broadcasts to [N, heads, L, S]. The mask gives ranges, or ones for
// visible keys as [N, S], [N, L, S] or [N, 1, L, S].
Result<ValueId> KeyBias(OnnxLowering& b, size_t input, ValueId keys, double off) {
  if (!b.has(input)) return kNoValue;
  ONCILLA_ASSIGN(const int rank, b.Rank(input, "the mask"));
  const DType dtype = b.fact(keys).dtype;
  const ValueId mask = b.in(input);
  ValueId seen = kNoValue;
  if (rank == 1) {
    ONCILLA_ASSIGN(seen, SeenWithin(b, input, keys));
  } else {
    const ValueId none = b.Constant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(const ValueId number, b.Cast(mask, DType::kI64, "mask_number"));
    ONCILLA_ASSIGN(seen, b.Add("Greater", {}, {number, none}, "seen"));
    if (rank == 2) {
      ONCILLA_ASSIGN(seen, b.Unsqueeze(seen, {1, 2}, "seen_by_all"));
    } else if (rank == 3) {
      ONCILLA_ASSIGN(seen, b.Unsqueeze(seen, {1}, "seen_by_heads"));
    } else if (rank != 4) {
      return InvalidArgument("a mask of rank ", rank);
    }
  }
  return AddMaskBias(b, seen, kNoValue, dtype, off);
}

// The sum of both biases; either may be kNoValue.
Result<ValueId> SumOf(OnnxLowering& b, ValueId x, ValueId y, std::string_view role) {
  if (x == kNoValue) return y;
  if (y == kNoValue) return x;
  return b.Add("Add", {}, {x, y}, role);
}

struct Parts {
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;  // [N, heads, L or S, size]
  ValueId own_k = kNoValue;                          // keys of this step alone, if there is a past
};

// Attention over `parts` with the node's masks; the heads of the result are joined.
Result<ValueId> Attend(OnnxLowering& b, const Parts& parts, size_t mask, size_t extra,
                       ValueId past) {
  ONCILLA_ASSIGN(const float off, b.Float("mask_filter_value", -10000));
  ONCILLA_ASSIGN(const bool causal, b.Flag("unidirectional", false));
  ONCILLA_ASSIGN(float scale, b.Float("scale", 0));
  if (scale == 0) {
    ONCILLA_ASSIGN(const int64_t size, KnownSize(b, parts.q, 3, "the size of a head"));
    scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  }
  AttentionParts op{parts.q, parts.k, parts.v};
  ONCILLA_ASSIGN(const ValueId bias, KeyBias(b, mask, parts.k, double{off}));
  ONCILLA_ASSIGN(op.mask, SumOf(b, bias, b.in(extra), "biases"));
  AttentionAttrs attrs;
  attrs.scale = double{scale};
  if (causal) attrs.right = 0;
  if (causal && past != kNoValue) ONCILLA_TRY(PlaceBehind(b, past, parts.own_k, attrs, op));
  ONCILLA_ASSIGN(const ValueId y, AddAttention(b, attrs, op, "by_head"));
  return JoinHeads(b, y, "");
}

// Past keys or values: one half of the input [2, N, heads, P, size].
Result<ValueId> HalfOfPast(OnnxLowering& b, size_t past, int64_t half, const std::string& name) {
  ONCILLA_ASSIGN(const int rank, b.Rank(past, "the cache"));
  if (rank != 5) return InvalidArgument("a cache of rank ", rank);
  const ValueId at = b.Constant(Tensor::ScalarInt64(half));
  return b.Add(GatherAttrs{.axis = 0}, {b.in(past), at}, name);
}

// Attention over queries, keys and values that are concatenated, [N, L, sum of sizes]. If keys and
// values have the same size, also returns both including the past, as the next step takes them.
Result<Values> AttendProjected(OnnxLowering& b, ValueId projected, std::vector<int64_t> sizes,
                               size_t mask, size_t past, size_t extra) {
  ONCILLA_ASSIGN(const int64_t heads, b.NeedInt("num_heads"));
  ONCILLA_ASSIGN(const Values split, b.AddAll(SplitAttrs{.axis = -1, .parts = 3},
                                              {projected, b.Ints(std::move(sizes))}, "parts"));
  Parts parts;
  ONCILLA_ASSIGN(parts.q, SplitHeads(b, split[0], heads, "q"));
  ONCILLA_ASSIGN(parts.k, SplitHeads(b, split[1], heads, "k"));
  ONCILLA_ASSIGN(parts.v, SplitHeads(b, split[2], heads, "v"));
  ValueId before = kNoValue;
  if (b.has(past)) {
    parts.own_k = parts.k;
    const ConcatAttrs along = {.axis = 2};
    ONCILLA_ASSIGN(before, HalfOfPast(b, past, 0, "past_key"));
    ONCILLA_ASSIGN(const ValueId values, HalfOfPast(b, past, 1, "past_value"));
    ONCILLA_ASSIGN(parts.k, b.Add(along, {before, parts.k}, "present_key"));
    ONCILLA_ASSIGN(parts.v, b.Add(along, {values, parts.v}, "present_value"));
  }
  ONCILLA_ASSIGN(const ValueId y, Attend(b, parts, mask, extra, before));
  const PartialShape key_shape = b.fact(parts.k).shape, value_shape = b.fact(parts.v).shape;
  const bool same = !key_shape.ranked() || !value_shape.ranked() || !key_shape[3].known() ||
                    !value_shape[3].known() || key_shape[3].size == value_shape[3].size;
  if (!b.wants(1) || !same) return Values{y};
  ONCILLA_ASSIGN(const ValueId keys, b.Unsqueeze(parts.k, {0}, "present_keys"));
  ONCILLA_ASSIGN(const ValueId values, b.Unsqueeze(parts.v, {0}, "present_values"));
  ONCILLA_ASSIGN(const ValueId present, b.Add(ConcatAttrs{.axis = 0}, {keys, values}, "present"));
  return Values{y, present};
}

// Refuses attributes of both ops that are not supported.
Status RefuseRotaryAndSharedCache(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool rotary, b.Flag("do_rotary", false));
  ONCILLA_ASSIGN(const bool shared, b.Flag("past_present_share_buffer", false));
  b.Ignore("rotary_embedding_dim");
  if (rotary) return Unsupported("with do_rotary");
  if (shared) return Unsupported("with a cache that past and present share");
  return {};
}

// The widths of the queries, keys and values, as equal parts of the weights at input 1.
Result<std::vector<int64_t>> ThirdsOfWeights(OnnxLowering& b) {
  const PartialShape weights = b.in_fact(1).shape;
  if (!weights.ranked() || weights.rank() != 2 || !weights[1].known()) {
    return Unsupported("the sizes of the weights are not known");
  }
  return std::vector<int64_t>(3, weights[1].size / 3);
}

// Attention: one product gives queries, keys and values of one input.
Result<Values> LowerMicrosoftAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> sizes, b.IntList("qkv_hidden_sizes"));
  ONCILLA_TRY(RefuseRotaryAndSharedCache(b));
  if (b.has(6)) return Unsupported("with past_sequence_length");
  if (sizes.empty()) {
    ONCILLA_ASSIGN(sizes, ThirdsOfWeights(b));
  }
  if (sizes.size() != 3) return InvalidArgument("qkv_hidden_sizes has ", sizes.size(), " sizes");
  ONCILLA_ASSIGN(const ValueId all, b.Add(MatMulAttrs{}, {b.in(0), b.in(1), b.in(2)}, "projected"));
  return AttendProjected(b, all, std::move(sizes), 3, 4, 5);
}

// The same with an integer product. Inputs: input, weights, bias, both scales, mask, both zero
// points, past.
Result<Values> LowerQAttention(OnnxLowering& b) {
  ONCILLA_TRY(RefuseRotaryAndSharedCache(b));
  ONCILLA_ASSIGN(std::vector<int64_t> sizes, ThirdsOfWeights(b));
  ONCILLA_ASSIGN(const ValueId x, Moved(b, 0, 6, false, "x"));
  ONCILLA_ASSIGN(const ValueId w, Moved(b, 1, 7, false, "weights"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("MatMul", {}, {x, w}, "sum"));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(sum, DType::kF32, "real"));
  ONCILLA_ASSIGN(const ValueId scale, b.Add("Mul", {}, {b.in(3), b.in(4)}, "scale"));
  ONCILLA_ASSIGN(ValueId all, b.Add("Mul", {}, {real, scale}, "scaled_sum"));
  ONCILLA_ASSIGN(all, b.Add("Add", {}, {all, b.in(2)}, "projected"));
  constexpr size_t kNone = 99;
  return AttendProjected(b, all, std::move(sizes), 5, 8, kNone);
}

// Splits [N, L, heads, n, size] into n tensors [N, heads, L, size].
Result<Values> Unpack(OnnxLowering& b, ValueId packed, int64_t n, const std::string& name) {
  Values parts;
  for (int64_t i = 0; i < n; ++i) {
    const std::string own = StrCat(name, i);
    const ValueId at = b.Constant(Tensor::ScalarInt64(i));
    ONCILLA_ASSIGN(const ValueId part, b.Add(GatherAttrs{.axis = 3}, {packed, at}, own + "_apart"));
    ONCILLA_ASSIGN(const ValueId turned, b.Transpose(part, {0, 2, 1, 3}, own));
    parts.push_back(turned);
  }
  return parts;
}

// Adds a range of the projections' bias [Hq + Hk + Hv] to queries, keys or values before they are
// split into heads.
Result<ValueId> WithBias(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, size_t input,
                         const std::string& name) {
  if (!b.has(input)) return x;
  ONCILLA_ASSIGN(const ValueId bias,
                 b.Add("Slice", {}, {b.in(input), b.Ints({begin}), b.Ints({end})}, name + "_bias"));
  return b.Add("Add", {}, {x, bias}, name + "_biased");
}

Result<int64_t> WidthOf(OnnxLowering& b, size_t input) {
  const PartialShape shape = b.in_fact(input).shape;
  if (shape.ranked() && shape.rank() == 3 && shape[2].known()) return shape[2].size;
  return Unsupported("the width of input ", input, " is not known");
}

Result<Parts> ReadParts(OnnxLowering& b, int64_t heads, size_t bias) {
  Parts parts;
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the query"));
  if (rank == 5) {
    if (b.has(bias)) return Unsupported("packed queries with a bias");
    ONCILLA_ASSIGN(const Values all, Unpack(b, b.in(0), 3, "packed"));
    return Parts{all[0], all[1], all[2]};
  }
  if (rank != 3) return InvalidArgument("the query has rank ", rank);
  if (!b.has(1)) return Unsupported("without a key");
  ONCILLA_ASSIGN(const int key_rank, b.Rank(1, "the key"));
  ONCILLA_ASSIGN(const int64_t width, WidthOf(b, 0));
  ONCILLA_ASSIGN(const ValueId q, WithBias(b, b.in(0), 0, width, bias, "q"));
  ONCILLA_ASSIGN(parts.q, SplitHeads(b, q, heads, "q"));
  if (key_rank == 5) {
    if (b.has(bias)) return Unsupported("packed keys with a bias");
    ONCILLA_ASSIGN(const Values both, Unpack(b, b.in(1), 2, "packed"));
    return Parts{parts.q, both[0], both[1]};
  }
  if (!b.has(2)) return DataLoss("the value is missing");
  if (key_rank == 4) {
    // Keys and values of rank 4 are split into heads already and include their bias.
    parts.k = b.in(1), parts.v = b.in(2);
    return parts;
  }
  ONCILLA_ASSIGN(const int64_t key_width, WidthOf(b, 1));
  ONCILLA_ASSIGN(const int64_t value_width, WidthOf(b, 2));
  ONCILLA_ASSIGN(const ValueId k, WithBias(b, b.in(1), width, width + key_width, bias, "k"));
  ONCILLA_ASSIGN(const ValueId v, WithBias(b, b.in(2), width + key_width,
                                           width + key_width + value_width, bias, "v"));
  ONCILLA_ASSIGN(parts.k, SplitHeads(b, k, heads, "k"));
  ONCILLA_ASSIGN(parts.v, SplitHeads(b, v, heads, "v"));
  return parts;
}

// Writes new rows [N, heads, L, size] into a buffer [N, heads, most, size] from `place` on, i64[1].
Result<ValueId> WithRowsAt(OnnxLowering& b, ValueId buffer, ValueId rows, ValueId place,
                           const std::string& name) {
  // A negative position does not count from the end; it must fail like any outside the buffer.
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId count, SizeOf(b, rows, 2, name + "_count"));
  ONCILLA_ASSIGN(ValueId at, b.Add("Range", {}, {none, count, one}, name + "_row"));
  ONCILLA_ASSIGN(at, b.Add("Add", {}, {at, place}, name + "_row_place"));
  ONCILLA_ASSIGN(const ValueId all, b.Sizes(buffer, 2, 3, name + "_rows"));
  ONCILLA_ASSIGN(const ValueId wrong, b.Add("Less", {}, {at, none}, name + "_wrong"));
  ONCILLA_ASSIGN(at, b.Add("Where", {}, {wrong, all, at}, name + "_place"));
  ONCILLA_ASSIGN(at, b.Unsqueeze(at, {0, 1, 3}, name + "_place_upright"));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(rows, 0, 4, name + "_row_shape"));
  ONCILLA_ASSIGN(at, b.Add("Expand", {}, {at, shape}, name + "_places"));
  return b.Add(ScatterElementsAttrs{.axis = 2}, {buffer, at, rows}, name);
}

// A cache buffer that past and present share. The members are input indices: past keys, past
// values, and the number of filled rows, after which the rows of this step are written.
struct SharedBuffer {
  size_t keys = 0, values = 0, filled = 0;
};
struct Shared {
  ValueId keys = kNoValue, values = kNoValue;  // the whole buffers
  ValueId past = kNoValue;                     // the keys before this step
};
// Writes the keys and values of `parts` to the buffer; `parts` then has all filled rows.
Result<Shared> AddToBuffer(OnnxLowering& b, const SharedBuffer& at, Parts& parts) {
  if (!b.has(at.filled)) return DataLoss("past_sequence_length is missing");
  if (!b.has(at.keys) || !b.has(at.values)) return DataLoss("the cache is missing");
  ONCILLA_ASSIGN(ValueId place, b.Cast(b.in(at.filled), DType::kI64, "place_wide"));
  ONCILLA_ASSIGN(place, b.Add(ReshapeAttrs{}, {place, b.Ints({1})}, "place"));
  ONCILLA_ASSIGN(const ValueId rows, b.Sizes(parts.k, 2, 3, "new_rows"));
  ONCILLA_ASSIGN(const ValueId end, b.Add("Add", {}, {place, rows}, "end"));
  const auto first = [&](ValueId x, ValueId to, const char* name) {
    return b.Add("Slice", {}, {x, b.Ints({0}), to, b.Ints({2})}, name);
  };
  Shared out;
  ONCILLA_ASSIGN(out.keys, WithRowsAt(b, b.in(at.keys), parts.k, place, "present_key"));
  ONCILLA_ASSIGN(out.values, WithRowsAt(b, b.in(at.values), parts.v, place, "present_value"));
  ONCILLA_ASSIGN(out.past, first(b.in(at.keys), place, "past_keys"));
  ONCILLA_ASSIGN(parts.k, first(out.keys, end, "keys"));
  ONCILLA_ASSIGN(parts.v, first(out.values, end, "values"));
  return out;
}

Result<Values> LowerMultiHeadAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t heads, b.NeedInt("num_heads"));
  if (b.has(9)) return Unsupported("with a cache that is shared between beams");
  if (b.has(6) != b.has(7)) return InvalidArgument("past_key and past_value go together");
  ONCILLA_ASSIGN(Parts parts, ReadParts(b, heads, 3));
  if (b.has(8)) {
    parts.own_k = parts.k;
    ONCILLA_ASSIGN(const Shared shared, AddToBuffer(b, {6, 7, 8}, parts));
    ONCILLA_ASSIGN(const ValueId y, Attend(b, parts, 4, 5, shared.past));
    return Values{y, shared.keys, shared.values};
  }
  if (b.has(6)) {
    parts.own_k = parts.k;
    const ConcatAttrs along = {.axis = 2};
    ONCILLA_ASSIGN(parts.k, b.Add(along, {b.in(6), parts.k}, "present_key"));
    ONCILLA_ASSIGN(parts.v, b.Add(along, {b.in(7), parts.v}, "present_value"));
  }
  ONCILLA_ASSIGN(const ValueId y, Attend(b, parts, 4, 5, b.in(6)));
  return Values{y, parts.k, parts.v};
}

// One step of a decoder: attention to the keys of an encoder, or to those of earlier steps and its
// own. If past and present share a buffer, its rows up to those of this step are visible.
Result<Values> LowerDecoderMaskedAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t heads, b.NeedInt("num_heads"));
  ONCILLA_ASSIGN(const bool shared, b.Flag("past_present_share_buffer", false));
  ONCILLA_ASSIGN(const bool products, b.Flag("output_qk", false));
  if (products || b.wants(3)) return Unsupported("with output_qk");
  if (b.has(8) || b.has(9)) return Unsupported("with a cache that is shared between beams");
  if (b.has(5) != b.has(6)) return InvalidArgument("past_key and past_value go together");
  ONCILLA_ASSIGN(Parts parts, ReadParts(b, heads, 10));
  if (b.has(5) && shared) {
    ONCILLA_ASSIGN(const Shared buffer, AddToBuffer(b, {5, 6, 7}, parts));
    ONCILLA_ASSIGN(const ValueId y, Attend(b, parts, 3, 4, kNoValue));
    return Values{y, buffer.keys, buffer.values};
  }
  if (b.has(5)) {
    const ConcatAttrs along = {.axis = 2};
    ONCILLA_ASSIGN(parts.k, b.Add(along, {b.in(5), parts.k}, "present_key"));
    ONCILLA_ASSIGN(parts.v, b.Add(along, {b.in(6), parts.v}, "present_value"));
  }
  ONCILLA_ASSIGN(const ValueId y, Attend(b, parts, 3, 4, kNoValue));
  return Values{y, parts.k, parts.v};
}

// The class of each distance (key - query) from -farthest to farthest, as in T5: near distances
// have a class each, the others share the remaining classes on a logarithmic scale. Computed in
// float, as the models were trained.
std::vector<int64_t> DistanceClasses(int64_t classes, int64_t farthest, bool both_ways) {
  const int64_t own = both_ways ? classes / 2 : classes, exact = own / 2;
  const auto in_exacts = [&](int64_t distance) {
    return std::log(static_cast<float>(distance) / static_cast<float>(exact));
  };
  std::vector<int64_t> out;
  for (int64_t ahead = -farthest; ahead <= farthest; ++ahead) {
    const int64_t distance = both_ways ? std::abs(ahead) : std::max<int64_t>(-ahead, 0);
    int64_t place = distance;
    if (distance >= exact) {
      const float share = in_exacts(distance) / in_exacts(farthest);
      place = exact + static_cast<int64_t>(share * static_cast<float>(own - exact));
    }
    out.push_back(std::min(place, own - 1) + (both_ways && ahead > 0 ? own : 0));
  }
  return out;
}

// A bias for each head and class of distances, [1, heads, length, length]. The values of the table
// are stored head by head, although its shape states the other order.
Result<Values> LowerRelativePositionBias(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t farthest, b.NeedInt("max_distance"));
  ONCILLA_ASSIGN(const bool both_ways, b.Flag("is_bidirectional", false));
  const PartialShape table = b.in_fact(0).shape;
  if (!table.known() || table.rank() != 2) return Unsupported("a table of shape ", table);
  const int64_t classes = table[0].size, exact = classes / (both_ways ? 4 : 2);
  if (exact < 1 || farthest <= exact || farthest > (1 << 20)) {
    return InvalidArgument("max_distance is ", farthest, " with ", classes, " classes");
  }
  if (b.in(1) != b.in(2)) {
    ONCILLA_ASSIGN(const int64_t queries, b.KnownInt(1, "query_length"));
    ONCILLA_ASSIGN(const int64_t keys, b.KnownInt(2, "key_length"));
    if (queries != keys) return Unsupported("for ", queries, " queries and ", keys, " keys");
  }
  const auto number = [&](int64_t v) { return b.Constant(Tensor::ScalarInt64(v)); };
  ONCILLA_ASSIGN(ValueId length, b.ToScalar(b.in(1), "length"));
  ONCILLA_ASSIGN(length, b.Cast(length, DType::kI64, "length_wide"));
  ONCILLA_ASSIGN(const ValueId keys, b.Add("Range", {}, {number(0), length, number(1)}, "keys"));
  ONCILLA_ASSIGN(const ValueId queries, b.Unsqueeze(keys, {1}, "queries"));
  ONCILLA_ASSIGN(ValueId ahead, b.Add("Sub", {}, {keys, queries}, "ahead"));
  ONCILLA_ASSIGN(ahead,
                 b.Add("Clip", {}, {ahead, number(-farthest), number(farthest)}, "ahead_or_less"));
  ONCILLA_ASSIGN(const ValueId place, b.Add("Add", {}, {ahead, number(farthest)}, "place"));
  ONCILLA_ASSIGN(
      const ValueId by_head,
      b.Add(ReshapeAttrs{}, {b.in(0), b.Ints({table[1].size, classes})}, "table_by_head"));
  const GatherAttrs along = {.axis = 1};
  ONCILLA_ASSIGN(
      const ValueId by_distance,
      b.Add(along, {by_head, b.Ints(DistanceClasses(classes, farthest, both_ways))}, "distances"));
  ONCILLA_ASSIGN(const ValueId bias, b.Add(along, {by_distance, place}, "bias"));
  return One(b.Unsqueeze(bias, {0}, ""));
}

constexpr OnnxOpRow kRows[] = {
    {"Attention", 1, kNewestOnnxMicrosoft, 2, "", LowerMicrosoftAttention},
    {"DecoderMaskedMultiHeadAttention", 1, kNewestOnnxMicrosoft, 1, "",
     LowerDecoderMaskedAttention},
    {"MultiHeadAttention", 1, kNewestOnnxMicrosoft, 1, "", LowerMultiHeadAttention},
    {"QAttention", 1, kNewestOnnxMicrosoft, 5, "", LowerQAttention},
    {"RelativePositionBias", 1, kNewestOnnxMicrosoft, 3, "", LowerRelativePositionBias},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftAttentionRows() { return kRows; }

}  // namespace oncilla
