// com.microsoft's GroupQueryAttention: attention of decoders over a cache of keys and values, in
// canonical ops. The results of padding rows, which ONNX Runtime leaves undefined, are computed
// from all keys that are not padding.
#include <limits>

#include "engine/import/onnx/domains/microsoft_cache.h"
#include "engine/import/onnx/ops/attention.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/nn/norm.h"

namespace oncilla {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Inputs by position.
enum : size_t { kQuery, kKey, kValue, kPastKey, kPastValue, kLengths, kTotal, kCosine, kSine };
enum : size_t { kPlaces = 9, kBias, kSink, kKeyScale, kValueScale, kQueryNorm, kKeyNorm };

Status CheckKind(OnnxLowering& b) {
  b.Ignore("qk_output");  // concerns the fourth output, which is not computed
  if (!b.has(kLengths) || !b.has(kTotal)) return DataLoss("the lengths of the samples are missing");
  if (b.has(kKey) != b.has(kValue)) return InvalidArgument("key and value go together");
  if (b.has(kQueryNorm) != b.has(kKeyNorm)) {
    return InvalidArgument("q_norm_weight and k_norm_weight go together");
  }
  if (b.has(kPastKey) != b.has(kPastValue)) {
    return InvalidArgument("past_key and past_value go together");
  }
  return {};
}

// Queries, keys and values by head; they are split if they come in one tensor.
Result<Grouped> ReadParts(OnnxLowering& b) {
  Grouped g;
  ONCILLA_ASSIGN(g.heads, b.NeedInt("num_heads"));
  ONCILLA_ASSIGN(g.shared, b.NeedInt("kv_num_heads"));
  constexpr int64_t kMostHeads = int64_t{1} << 20;
  if (g.heads < 1 || g.shared < 1 || g.heads > kMostHeads || g.heads % g.shared != 0) {
    return InvalidArgument(g.heads, " heads of queries cannot share ", g.shared);
  }
  ONCILLA_ASSIGN(const int rank, b.Rank(kQuery, "the query"));
  if (rank != 3) return InvalidArgument("the query has rank ", rank, ", not 3");
  const bool packed = !b.has(kKey);
  const Dim width = b.in_fact(kQuery).shape[2];
  const int64_t parts = packed ? g.heads + 2 * g.shared : g.heads;
  if (!width.known()) return Unsupported("the width of the query is not known");
  if (width.size < parts || width.size % parts != 0) {
    return InvalidArgument("a query of width ", width.size, " for ", parts, " heads");
  }
  g.size = width.size / parts;
  Values tensors = {b.in(kQuery), b.in(kKey), b.in(kValue)};
  if (packed) {
    const ValueId sizes = b.Ints({g.heads * g.size, g.shared * g.size, g.shared * g.size});
    ONCILLA_ASSIGN(tensors,
                   b.AddAll(SplitAttrs{.axis = -1, .parts = 3}, {b.in(kQuery), sizes}, "unpacked"));
  }
  ONCILLA_ASSIGN(g.q, SplitHeads(b, tensors[0], g.heads, "q"));
  ONCILLA_ASSIGN(g.k, SplitHeads(b, tensors[1], g.shared, "k"));
  ONCILLA_ASSIGN(g.v, SplitHeads(b, tensors[2], g.shared, "v"));
  g.wide = b.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  g.past_keys = b.in(kPastKey), g.past_values = b.in(kPastValue);
  ONCILLA_ASSIGN(g.key_form, ReadCacheForm(b, "k_quant_type", kKeyScale, g));
  ONCILLA_ASSIGN(g.value_form, ReadCacheForm(b, "v_quant_type", kValueScale, g));
  if (b.has(kBias)) {
    ONCILLA_ASSIGN(g.bias, b.Cast(b.in(kBias), b.dtype(), "bias"));
  }
  return g;
}

// Norms each head's queries and keys by the root of their mean square, where there are weights.
Status Norm(OnnxLowering& b, Grouped& g) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("qk_norm_epsilon", 1e-6f));
  if (!b.has(kQueryNorm)) return {};
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = double{epsilon}};
  for (ValueId* x : {&g.q, &g.k}) {
    const bool query = x == &g.q;
    ONCILLA_ASSIGN(*x, b.Add("RmsNorm", attrs, {*x, b.in(query ? kQueryNorm : kKeyNorm)},
                             query ? "normed_query" : "normed_key"));
  }
  return {};
}

// The positions of the queries: those of a prompt (as many as there are keys in total) start at 0;
// otherwise they are the last ones of their sample.
Status FindPlaces(OnnxLowering& b, Grouped& g) {
  ONCILLA_ASSIGN(ValueId lengths, b.Cast(b.in(kLengths), DType::kI64, "last_key"));
  ONCILLA_ASSIGN(lengths, b.Add(ReshapeAttrs{}, {lengths, b.Ints({-1})}, "last_keys"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(g.lengths, b.Add("Add", {}, {lengths, one}, "lengths"));
  ONCILLA_ASSIGN(const ValueId total, b.Cast(b.in(kTotal), DType::kI64, "total_wide"));
  ONCILLA_ASSIGN(g.total, b.Add(ReshapeAttrs{}, {total, b.Ints({})}, "total"));
  ONCILLA_ASSIGN(const ValueId rows, SizeOf(b, g.q, 2, "query_rows"));
  ONCILLA_ASSIGN(const ValueId prompt, b.Add("Equal", {}, {rows, g.total}, "is_prompt"));
  ONCILLA_ASSIGN(const ValueId before, b.Add("Sub", {}, {g.lengths, rows}, "keys_before"));
  ONCILLA_ASSIGN(g.start, b.Add("Where", {}, {prompt, none, before}, "start"));
  ONCILLA_ASSIGN(ValueId row, b.Add("Range", {}, {none, rows, one}, "query_row"));
  ONCILLA_ASSIGN(row, b.Unsqueeze(row, {0}, "query_row_of_all"));
  ONCILLA_ASSIGN(const ValueId start, b.Unsqueeze(g.start, {1}, "start_of_rows"));
  ONCILLA_ASSIGN(g.places, b.Add("Add", {}, {start, row}, "query_places"));
  return {};
}

// Rotates queries and keys by the angles of their positions.
Status Rotate(OnnxLowering& b, Grouped& g) {
  ONCILLA_ASSIGN(const bool rotary, b.Flag("do_rotary", false));
  ONCILLA_ASSIGN(const bool interleaved, b.Flag("rotary_interleaved", false));
  if (!rotary) return {};
  if (!b.has(kCosine) || !b.has(kSine)) return DataLoss("the cosines or sines are missing");
  const PartialShape cache = b.in_fact(kCosine).shape;
  if (!cache.ranked() || cache.rank() != 2 || !cache[1].known()) {
    return Unsupported("the width of the cosines is not known");
  }
  ValueId places = g.places;
  if (b.has(kPlaces)) {
    ONCILLA_ASSIGN(places, b.Cast(b.in(kPlaces), DType::kI64, "position_ids"));
  }
  ValueId waves[2];
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "cosine" : "sine";
    ONCILLA_ASSIGN(ValueId wave, b.Add(GatherAttrs{.negative_indices = false},
                                       {b.in(kCosine + i), places}, name + "_at"));
    ONCILLA_ASSIGN(wave, b.Cast(wave, g.wide, name + "_wide"));
    ONCILLA_ASSIGN(waves[i], b.Unsqueeze(wave, {1}, name));
  }
  const int64_t turned = SaturatingMul(cache[1].size, 2);
  if (turned < 2) return InvalidArgument("cosines of width ", cache[1].size);
  for (ValueId* x : {&g.q, &g.k}) {
    ONCILLA_ASSIGN(const ValueId wide, b.Cast(*x, g.wide, "unturned"));
    ONCILLA_ASSIGN(const ValueId y, AddRotation(b, wide, waves[0], waves[1], turned, interleaved));
    ONCILLA_ASSIGN(*x, b.Cast(y, b.dtype(), "turned_narrow"));
  }
  return {};
}

// Attention to the cache in its layout.
Result<ValueId> Attend(OnnxLowering& b, const Grouped& g, const Cache& cache, int64_t window) {
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 0));
  ONCILLA_ASSIGN(const float softcap, b.Float("softcap", 0));
  ONCILLA_ASSIGN(const bool causal, b.Flag("causal", true));
  ONCILLA_ASSIGN(const bool smooth, b.Flag("smooth_softmax", false));
  if (window < -1) return InvalidArgument("local_window_size is ", window);
  if (window > 0 && !causal) return Unsupported("a window without causal");
  AttentionAttrs attrs;
  attrs.scale = double{scale};
  attrs.softcap = softcap > 0 ? double{softcap} : 0;
  if (window > 0) attrs.left = window - 1;
  if (causal) attrs.right = 0;
  // A padding row can be so far behind that its window contains no key.
  attrs.zero_blind = true;
  AttentionParts parts{g.q, cache.keys, cache.values};
  parts.lengths = cache.lengths;
  parts.starts = cache.starts;
  parts.mask = cache.bias;
  if (b.has(kSink)) {
    ONCILLA_ASSIGN(parts.sink, b.Cast(b.in(kSink), b.dtype(), "sink_in_type"));
    ONCILLA_ASSIGN(parts.sink, b.Add(ReshapeAttrs{}, {parts.sink, b.Ints({-1})}, "sink"));
  } else if (smooth) {
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
    ONCILLA_ASSIGN(parts.sink, b.Add("Expand", {}, {zero, b.Ints({g.heads})}, "sink"));
  }
  return AddAttention(b, attrs, parts, "by_head");
}

Result<Values> LowerGroupQueryAttention(OnnxLowering& b) {
  ONCILLA_TRY(CheckKind(b));
  ONCILLA_ASSIGN(Grouped g, ReadParts(b));
  ONCILLA_TRY(FindPlaces(b, g));
  ONCILLA_TRY(Norm(b, g));
  ONCILLA_TRY(Rotate(b, g));
  ONCILLA_ASSIGN(const int64_t window, b.Int("local_window_size", -1));
  ONCILLA_ASSIGN(const bool windowed, b.Flag("sliding_window_cache", false));
  ONCILLA_ASSIGN(const Cache cache,
                 windowed ? AddWindowedCache(b, g, window) : AddWholeCache(b, g));
  ONCILLA_ASSIGN(ValueId y, Attend(b, g, cache, window));
  ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  return Values{y, cache.present_keys, cache.present_values};
}

// Sets the scores of words to minus infinity that would complete a sequence of `ngram_size` words
// which already occurs in the row.
Result<Values> LowerNGramRepeatBlock(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t n, b.NeedInt("ngram_size"));
  constexpr int64_t kMost = 64;
  if (n < 2 || n > kMost) return Unsupported("with ngram_size ", n);
  const ValueId last_axis = b.Ints({1});
  const auto part = [&](int64_t begin, int64_t end, const std::string& name) {
    return b.Add("Slice", {}, {b.in(0), b.Ints({begin}), b.Ints({end}), last_axis}, name);
  };
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  ValueId repeats = kNoValue;
  for (int64_t j = 0; j + 1 < n; ++j) {
    const int64_t left = n - 1 - j;
    ONCILLA_ASSIGN(const ValueId there, part(j, -left, StrCat("word", j)));
    ONCILLA_ASSIGN(const ValueId here, part(-left, left == 1 ? kEnd : 1 - left, StrCat("last", j)));
    ONCILLA_ASSIGN(const ValueId same, b.Add("Equal", {}, {there, here}, StrCat("same", j)));
    if (repeats == kNoValue) {
      repeats = same;
    } else {
      ONCILLA_ASSIGN(repeats, b.Add("And", {}, {repeats, same}, StrCat("same_to", j)));
    }
  }
  ONCILLA_ASSIGN(const ValueId next, part(n - 1, kEnd, "next"));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(b.dtype(1), kMinusInfinity));
  ONCILLA_ASSIGN(const ValueId on, b.Scalar(b.dtype(1), -kMinusInfinity));
  ONCILLA_ASSIGN(const ValueId most, b.Add("Where", {}, {repeats, off, on}, "most"));
  const ScatterElementsAttrs attrs = {.axis = 1, .reduction = "min"};
  return One(b.Add(attrs, {b.in(1), next, most}));
}

constexpr OnnxOpRow kRows[] = {
    {"GroupQueryAttention", 1, kNewestOnnxMicrosoft, 1, "", LowerGroupQueryAttention},
    {"NGramRepeatBlock", 1, kNewestOnnxMicrosoft, 2, "", LowerNGramRepeatBlock},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftDecoderRows() { return kRows; }

}  // namespace oncilla
