// com.microsoft's GroupQueryAttention: attention of decoders over a cache of keys and values, in
// canonical ops. The results of padding rows, which ONNX Runtime leaves undefined, are computed
// from all keys that are not padding.
#include <limits>

#include "engine/import/onnx/ops/attention.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Inputs by position.
enum : size_t { kQuery, kKey, kValue, kPastKey, kPastValue, kLengths, kTotal, kCosine, kSine };
enum : size_t { kPlaces = 9, kBias, kSink, kFirstUnsupported };

struct Grouped {
  int64_t heads = 0, shared = 0, size = 0;  // query heads, key and value heads; size of each
  DType wide = DType::kF32;                 // the type that is computed in
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;  // [N, heads or shared, L, size]
  ValueId total = kNoValue;    // i64[]: keys including the past, of the longest sample
  ValueId lengths = kNoValue;  // i64[N]: the same for each sample
  ValueId start = kNoValue;    // i64[N]: position of its first query
  ValueId places = kNoValue;   // i64[N, L]: positions of the queries in the cache
};

Status CheckKind(OnnxLowering& b) {
  b.Ignore("qk_output");  // concerns the fourth output, which is not computed
  b.Ignore("qk_norm_epsilon");
  b.Ignore("kv_cache_bit_width");
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    ONCILLA_ASSIGN(const std::string kind, b.String(name, "NONE"));
    if (kind != "NONE") return Unsupported("with a quantised cache (", name, " ", kind, ")");
  }
  for (size_t i = kFirstUnsupported; i < b.inputs(); ++i) {
    if (b.has(i))
      return Unsupported("with input ", i, ", a scale or norm of queries, keys or values");
  }
  if (!b.has(kLengths) || !b.has(kTotal)) return DataLoss("the lengths of the samples are missing");
  if (b.has(kKey) != b.has(kValue)) return InvalidArgument("key and value go together");
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
  return g;
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

// The cache with the new rows in it, as long as it was or as the longest sample needs. What follows
// a sample's rows is kept, as in a buffer that past and present share.
Result<ValueId> AddPresent(OnnxLowering& b, const Grouped& g, size_t input, ValueId rows,
                           const std::string& name) {
  const ValueId none = b.Ints({0});
  ValueId past = b.in(input);
  if (past == kNoValue) {
    ONCILLA_ASSIGN(past, b.Add("Slice", {}, {rows, none, none, b.Ints({2})}, name + "_empty"));
  } else {
    ONCILLA_ASSIGN(
        past, b.Add(EnsureShapeAttrs{.dims = {-1, g.shared, -1, g.size}}, {past}, name + "_past"));
  }
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(past, 2, 3, name + "_size"));
  ONCILLA_ASSIGN(ValueId more, b.Add("Sub", {}, {g.total, size}, name + "_lacking"));
  ONCILLA_ASSIGN(more, b.Add("Max", {}, {more, none}, name + "_added"));
  const ValueId before = b.Ints({0, 0, 0, 0, 0, 0});
  ONCILLA_ASSIGN(const ValueId pads,
                 b.Add(ConcatAttrs{.axis = 0}, {before, more, none}, name + "_pads"));
  ONCILLA_ASSIGN(const ValueId room, b.Add(PadAttrs{}, {past, pads}, name + "_room"));
  // A negative position does not count from the end; it must fail like any outside the cache.
  ONCILLA_ASSIGN(const ValueId all, SizeOf(b, room, 2, name + "_rows_in_all"));
  ONCILLA_ASSIGN(const ValueId wrong, b.Add("Less", {}, {g.places, none}, name + "_wrong"));
  ONCILLA_ASSIGN(ValueId places, b.Add("Where", {}, {wrong, all, g.places}, name + "_checked"));
  ONCILLA_ASSIGN(places, b.Unsqueeze(places, {1, 3}, name + "_along"));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(rows, 0, 4, name + "_shape"));
  ONCILLA_ASSIGN(places, b.Add("Expand", {}, {places, shape}, name + "_places"));
  return b.Add(ScatterElementsAttrs{.axis = 2}, {room, places, rows}, name);
}

// What the queries attend to, and the cache that the node gives back.
struct Cache {
  ValueId present_key = kNoValue, present_value = kNoValue;
  ValueId keys = kNoValue, values = kNoValue;  // [N, shared, rows, size], all of a sample in front
  ValueId lengths = kNoValue;                  // i64[N]: how many rows of each sample hold keys
  ValueId starts = kNoValue;                   // i64[N]: the row of its first query
  ValueId bias = kNoValue;                     // a column for each row
};

// The cache with all keys. A bias covers only the first `total` rows; then the others are cut off.
Result<Cache> WholeCache(OnnxLowering& b, const Grouped& g) {
  Cache cache{.lengths = g.lengths, .starts = g.start};
  ONCILLA_ASSIGN(cache.present_key, AddPresent(b, g, kPastKey, g.k, "present_key"));
  ONCILLA_ASSIGN(cache.present_value, AddPresent(b, g, kPastValue, g.v, "present_value"));
  cache.keys = cache.present_key, cache.values = cache.present_value;
  if (!b.has(kBias)) return cache;
  ONCILLA_ASSIGN(cache.bias, b.Cast(b.in(kBias), b.dtype(), "bias"));
  ONCILLA_ASSIGN(const ValueId end, b.Unsqueeze(g.total, {0}, "cache_end"));
  for (ValueId* x : {&cache.keys, &cache.values}) {
    const std::string name = x == &cache.keys ? "keys" : "values";
    ONCILLA_ASSIGN(*x, b.Add("Slice", {}, {*x, b.Ints({0}), end, b.Ints({2})}, name));
  }
  return cache;
}

// The cache of the last keys alone (sliding_window_cache): it has C rows, of which the first L(T)
// hold, in order, the last keys of a sample that has had T. Where rows give out, as many are let go
// at once as there are beyond the window W, so that L depends on T alone:
//   G = C - W + 1,  L(T) = T - G * ceil(max(T - C, 0) / G)
// The queries attend to the rows before them that are held, followed by their own. (The op's
// documentation, "Windowed KV Cache". The rows behind L(T), which it leaves open, repeat.)
class WindowedCache {
 public:
  WindowedCache(OnnxLowering& b, const Grouped& g) : b_(b), g_(g) {}

  Result<Cache> Make(int64_t window) {
    if (window < 1) return InvalidArgument("sliding_window_cache with local_window_size ", window);
    if (!b_.has(kPastKey)) return DataLoss("sliding_window_cache without past_key and past_value");
    zero_ = b_.Constant(Tensor::ScalarInt64(0));
    one_ = b_.Constant(Tensor::ScalarInt64(1));
    ONCILLA_TRY(Measure(window));
    Cache cache;
    ONCILLA_ASSIGN(const ValueId held, Held(g_.start, "held_before"));
    ONCILLA_ASSIGN(const ValueId first, Sub(g_.start, held, "first_before"));
    ONCILLA_ASSIGN(const ValueId held_now, Held(g_.lengths, "held"));
    ONCILLA_ASSIGN(const ValueId first_now, Sub(g_.lengths, held_now, "first"));
    ONCILLA_ASSIGN(cache.lengths, Sub(g_.lengths, first, "rows_with_keys"));
    cache.starts = held;
    ONCILLA_ASSIGN(const ValueId places, InOrder(held));
    ONCILLA_ASSIGN(ValueId kept, Sub(first_now, first, "rows_let_go"));
    ONCILLA_ASSIGN(kept, From(kept, capacity_, "kept"));
    for (size_t input : {kPastKey, kPastValue}) {
      const bool key = input == kPastKey;
      const std::string name = key ? "key" : "value";
      ONCILLA_ASSIGN(const ValueId past,
                     b_.Add(EnsureShapeAttrs{.dims = {-1, g_.shared, -1, g_.size}}, {b_.in(input)},
                            name + "_past"));
      ONCILLA_ASSIGN(const ValueId both, b_.Add(ConcatAttrs{.axis = 2}, {past, key ? g_.k : g_.v},
                                                name + "_past_and_new"));
      ONCILLA_ASSIGN((key ? cache.keys : cache.values), Rows(both, places, 2, name + "s"));
      ONCILLA_ASSIGN((key ? cache.present_key : cache.present_value),
                     Rows(key ? cache.keys : cache.values, kept, 2, "present_" + name));
    }
    if (b_.has(kBias)) {
      ONCILLA_ASSIGN(cache.bias, Bias(first));
    }
    return cache;
  }

 private:
  Result<ValueId> Sub(ValueId x, ValueId y, const std::string& name) {
    return b_.Add("Sub", {}, {x, y}, name);
  }
  Status Check(ValueId condition, const char* what, ValueId number, const std::string& name) {
    const ValueId text = b_.Constant(Tensor::Strings({}, {what}));
    return b_.AddAll(AssertAttrs{}, {condition, text, number}, name).status();
  }

  // Sets C, G and the number of rows, and checks that the window fits and that no sample has fewer
  // keys than there are queries.
  Status Measure(int64_t window) {
    ONCILLA_ASSIGN(capacity_, SizeOf(b_, b_.in(kPastKey), 2, "cache_capacity"));
    const ValueId within = b_.Constant(Tensor::ScalarInt64(window - 1));
    ONCILLA_ASSIGN(step_, Sub(capacity_, within, "let_go_at_once"));
    ONCILLA_ASSIGN(const ValueId fits, b_.Add("Greater", {}, {step_, zero_}, "window_fits"));
    ONCILLA_TRY(Check(fits, "the cache must have at least local_window_size rows; it has",
                      capacity_, "check_window"));
    // The check may come later than what is computed with the step.
    ONCILLA_ASSIGN(step_, b_.Add("Max", {}, {step_, one_}, "step"));
    ONCILLA_ASSIGN(const ValueId known, b_.Add("GreaterEqual", {}, {g_.start, zero_}, "started"));
    ONCILLA_ASSIGN(const ValueId all, b_.Add("ReduceAll", {}, {known}, "all_started"));
    ONCILLA_TRY(Check(all, "a sample has fewer keys than queries; its queries start at", g_.start,
                      "check_lengths"));
    ONCILLA_ASSIGN(const ValueId fresh, SizeOf(b_, g_.k, 2, "new_keys"));
    ONCILLA_ASSIGN(rows_, b_.Add("Add", {}, {capacity_, fresh}, "rows"));
    ONCILLA_ASSIGN(last_, Sub(rows_, one_, "last_row"));
    return {};
  }

  // L of samples that have had so many keys.
  Result<ValueId> Held(ValueId keys, const std::string& name) {
    ONCILLA_ASSIGN(ValueId beyond, Sub(keys, capacity_, name + "_beyond"));
    ONCILLA_ASSIGN(beyond, b_.Add("Max", {}, {beyond, zero_}, name + "_lacking"));
    ONCILLA_ASSIGN(const ValueId less, Sub(step_, one_, name + "_rounding"));
    ONCILLA_ASSIGN(beyond, b_.Add("Add", {}, {beyond, less}, name + "_rounded"));
    ONCILLA_ASSIGN(const ValueId times, b_.Add("Div", {}, {beyond, step_}, name + "_times"));
    ONCILLA_ASSIGN(const ValueId gone, b_.Add("Mul", {}, {times, step_}, name + "_gone"));
    return Sub(keys, gone, name);
  }

  // i64[N, count]: numbers from `start` of each sample on, none beyond the last row.
  Result<ValueId> From(ValueId start, ValueId count, const std::string& name) {
    ONCILLA_ASSIGN(ValueId row, b_.Add("Range", {}, {zero_, count, one_}, name + "_row"));
    ONCILLA_ASSIGN(row, b_.Unsqueeze(row, {0}, name + "_row_of_all"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(start, {1}, name + "_start"));
    ONCILLA_ASSIGN(row, b_.Add("Add", {}, {each, row}, name + "_numbers"));
    return b_.Add("Min", {}, {row, last_}, name + "_places");
  }

  // Where the rows that are held and then the new ones stand in past and new rows.
  Result<ValueId> InOrder(ValueId held) {
    ONCILLA_ASSIGN(ValueId row, b_.Add("Range", {}, {zero_, rows_, one_}, "row"));
    ONCILLA_ASSIGN(row, b_.Unsqueeze(row, {0}, "row_of_all"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(held, {1}, "held_of_rows"));
    ONCILLA_ASSIGN(const ValueId before, b_.Add("Less", {}, {row, each}, "is_held"));
    ONCILLA_ASSIGN(ValueId fresh, Sub(capacity_, held, "skipped"));
    ONCILLA_ASSIGN(fresh, From(fresh, rows_, "new"));
    return b_.Add("Where", {}, {before, row, fresh}, "row_places");
  }

  Result<ValueId> Rows(ValueId x, ValueId places, int64_t axis, const std::string& name) {
    return b_.Add(GatherAttrs{.axis = axis, .batch_dims = 1, .negative_indices = false},
                  {x, places}, name);
  }

  // The columns of the rows: those of the bias count all keys.
  Result<ValueId> Bias(ValueId first) {
    ONCILLA_ASSIGN(ValueId bias, b_.Cast(b_.in(kBias), b_.dtype(), "bias"));
    ONCILLA_ASSIGN(const ValueId samples, b_.Sizes(g_.q, 0, 1, "samples"));
    ONCILLA_ASSIGN(const ValueId rest, b_.Sizes(bias, 1, 4, "bias_sizes"));
    ONCILLA_ASSIGN(const ValueId shape,
                   b_.Add(ConcatAttrs{.axis = 0}, {samples, rest}, "bias_shape"));
    ONCILLA_ASSIGN(bias, b_.Add("Expand", {}, {bias, shape}, "bias_of_all"));
    ONCILLA_ASSIGN(const ValueId end, Sub(g_.total, one_, "last_column"));
    ONCILLA_ASSIGN(ValueId column, b_.Add("Range", {}, {zero_, rows_, one_}, "column"));
    ONCILLA_ASSIGN(column, b_.Unsqueeze(column, {0}, "column_of_all"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(first, {1}, "first_column"));
    ONCILLA_ASSIGN(column, b_.Add("Add", {}, {each, column}, "columns"));
    ONCILLA_ASSIGN(column, b_.Add("Min", {}, {column, end}, "bias_columns"));
    return Rows(bias, column, 3, "bias_of_rows");
  }

  OnnxLowering& b_;
  const Grouped& g_;
  ValueId zero_ = kNoValue, one_ = kNoValue;
  ValueId capacity_ = kNoValue, step_ = kNoValue;  // C and G
  ValueId rows_ = kNoValue, last_ = kNoValue;      // of past and new keys together
};

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
  ONCILLA_TRY(Rotate(b, g));
  ONCILLA_ASSIGN(const int64_t window, b.Int("local_window_size", -1));
  ONCILLA_ASSIGN(const bool windowed, b.Flag("sliding_window_cache", false));
  ONCILLA_ASSIGN(const Cache cache, windowed ? WindowedCache(b, g).Make(window) : WholeCache(b, g));
  ONCILLA_ASSIGN(ValueId y, Attend(b, g, cache, window));
  ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  return Values{y, cache.present_key, cache.present_value};
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
