// com.microsoft's GroupQueryAttention and SparseAttention: attention of decoders over a cache of
// keys and values, in canonical ops. The results of padding rows, which ONNX Runtime leaves
// undefined, are computed from all keys that are not padding.
#include <cmath>
#include <limits>

#include "engine/import/onnx/domains/microsoft_cache.h"
#include "engine/import/onnx/ops/attention.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/nn/norm.h"

namespace oncilla {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Input indices: first those that both ops share.
enum : size_t { kQuery, kKey, kValue, kPastKey, kPastValue };
enum : size_t { kPlaces = 9, kBias, kSink, kKeyScale, kValueScale, kQueryNorm, kKeyNorm };
enum : size_t { kBlockRows = 5, kBlockColumns };
struct DecoderInputs {
  size_t lengths, total, cosine, sine;
  int64_t unstated;  // to be added to the lengths
};
constexpr DecoderInputs kGrouped = {5, 6, 7, 8, 1};
constexpr DecoderInputs kSparse = {8, 7, 9, 10, 0};

Status CheckInputs(OnnxLowering& b, const DecoderInputs& at) {
  if (!b.has(at.lengths) || !b.has(at.total)) {
    return DataLoss("the lengths of the samples are missing");
  }
  if (b.has(kKey) != b.has(kValue)) return InvalidArgument("key and value go together");
  return {};
}

Status CheckKind(OnnxLowering& b) {
  b.Ignore("qk_output");  // concerns the fourth output
  ONCILLA_TRY(CheckInputs(b, kGrouped));
  if (b.has(kQueryNorm) != b.has(kKeyNorm)) {
    return InvalidArgument("q_norm_weight and k_norm_weight go together");
  }
  if (b.has(kPastKey) != b.has(kPastValue)) {
    return InvalidArgument("past_key and past_value go together");
  }
  return {};
}

// Queries, keys and values by head. If they come in one tensor, it is split.
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
  return g;
}

// Reads the forms of the cache, and the bias of the scores.
Status ReadForms(OnnxLowering& b, Grouped& g) {
  ONCILLA_ASSIGN(g.key_form, ReadCacheForm(b, "k_quant_type", kKeyScale, g));
  ONCILLA_ASSIGN(g.value_form, ReadCacheForm(b, "v_quant_type", kValueScale, g));
  if (b.has(kBias)) {
    ONCILLA_ASSIGN(g.bias, b.Cast(b.in(kBias), b.dtype(), "bias"));
  }
  return {};
}

// Divides each head's queries and keys by their root mean square, if there are weights for this.
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

// The positions of the queries. Those of a prompt (as many queries as keys in total) start at 0;
// otherwise the queries are the last positions of their sample.
Status FindPlaces(OnnxLowering& b, const DecoderInputs& at, Grouped& g) {
  ONCILLA_ASSIGN(ValueId lengths, b.Cast(b.in(at.lengths), DType::kI64, "last_key"));
  ONCILLA_ASSIGN(lengths, b.Add(ReshapeAttrs{}, {lengths, b.Ints({-1})}, "last_keys"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  g.lengths = lengths;
  if (at.unstated != 0) {
    const ValueId more = b.Constant(Tensor::ScalarInt64(at.unstated));
    ONCILLA_ASSIGN(g.lengths, b.Add("Add", {}, {lengths, more}, "lengths"));
  }
  ONCILLA_ASSIGN(const ValueId total, b.Cast(b.in(at.total), DType::kI64, "total_wide"));
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
Status Rotate(OnnxLowering& b, const DecoderInputs& at, size_t place_input, Grouped& g) {
  ONCILLA_ASSIGN(const bool rotary, b.Flag("do_rotary", false));
  ONCILLA_ASSIGN(const bool interleaved, b.Flag("rotary_interleaved", false));
  if (!rotary) return {};
  if (!b.has(at.cosine) || !b.has(at.sine)) return DataLoss("the cosines or sines are missing");
  const PartialShape cache = b.in_fact(at.cosine).shape;
  if (!cache.ranked() || cache.rank() != 2 || !cache[1].known()) {
    return Unsupported("the width of the cosines is not known");
  }
  ValueId places = g.places;
  if (b.has(place_input)) {
    ONCILLA_ASSIGN(places, b.Cast(b.in(place_input), DType::kI64, "position_ids"));
  }
  ValueId waves[2];
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "cosine" : "sine";
    ONCILLA_ASSIGN(ValueId wave, b.Add(GatherAttrs{.negative_indices = false},
                                       {b.in(i == 0 ? at.cosine : at.sine), places}, name + "_at"));
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

// The softmax of scores [N, heads, L, keys]. The sinks, one score per head, take part in it and are
// cut off afterwards.
Result<ValueId> AddSoftmaxWithSink(OnnxLowering& b, ValueId scores, ValueId sink) {
  if (sink == kNoValue) return b.Add("Softmax", {}, {scores}, "weights");
  ONCILLA_ASSIGN(sink, b.Cast(sink, b.fact(scores).dtype, "sink_wide"));
  ONCILLA_ASSIGN(sink, b.Unsqueeze(sink, {0, 2, 3}, "sink_of_heads"));
  ONCILLA_ASSIGN(const ValueId rows, b.Sizes(scores, 0, 3, "score_rows"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add(ConcatAttrs{.axis = 0}, {rows, b.Ints({1})}, "column"));
  ONCILLA_ASSIGN(sink, b.Add("Expand", {}, {sink, shape}, "sink_column"));
  ONCILLA_ASSIGN(ValueId y, b.Add(ConcatAttrs{.axis = 3}, {sink, scores}, "with_sink"));
  ONCILLA_ASSIGN(y, b.Add("Softmax", {}, {y}, "weights_and_sink"));
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  return b.Add("Slice", {}, {y, b.Ints({1}), b.Ints({kEnd}), b.Ints({3})}, "weights");
}

// The fourth output: the scores before (1) or after (2) the softmax, [N, heads, L, total], with 0
// where a key is hidden. ONNX Runtime leaves columns of padding undefined; here they count as
// hidden.
Result<ValueId> AddScoresShown(OnnxLowering& b, const Grouped& g, const Cache& cache,
                               const AttentionAttrs& attrs, ValueId sink) {
  ONCILLA_ASSIGN(const int64_t stage, b.Int("qk_output", 0));
  if (stage != 1 && stage != 2) return InvalidArgument("qk_output is ", stage);
  ONCILLA_ASSIGN(const ValueId end, b.Unsqueeze(g.total, {0}, "keys_shown"));
  ONCILLA_ASSIGN(ValueId k, b.Add("Slice", {}, {cache.keys, b.Ints({0}), end, b.Ints({2})}, "k"));
  ONCILLA_ASSIGN(k, ShareHeads(b, k, g.heads, "k"));
  ONCILLA_ASSIGN(k, b.Cast(k, g.wide, "k_wide"));
  ONCILLA_ASSIGN(const ValueId q, b.Cast(g.q, g.wide, "q_wide"));
  const double scale = attrs.scale == 0 ? 1 / std::sqrt(static_cast<double>(g.size)) : attrs.scale;
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(g.wide, scale));
  ONCILLA_ASSIGN(ValueId y, b.Add(MatMulAttrs{.transpose_b = true}, {q, k}, "products"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, factor}, "scores"));
  if (attrs.softcap > 0) {
    ONCILLA_ASSIGN(const ValueId cap, b.Scalar(g.wide, attrs.softcap));
    ONCILLA_ASSIGN(y, b.Add("Div", {}, {y, cap}, "part_of_cap"));
    ONCILLA_ASSIGN(y, b.Add("Tanh", {}, {y}, "bent"));
    ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, cap}, "capped"));
  }
  if (cache.bias != kNoValue) {
    ONCILLA_ASSIGN(const ValueId bias, b.Cast(cache.bias, g.wide, "bias_wide"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, bias}, "biased"));
  }
  HiddenKeys rule;
  rule.left = attrs.left, rule.right = attrs.right;
  rule.valid = cache.lengths, rule.start = cache.starts;
  ONCILLA_ASSIGN(const ValueId hidden, AddHidden(b, rule, g.q, k));
  if (stage == 2) {
    ONCILLA_ASSIGN(const ValueId off, b.Scalar(g.wide, kMinusInfinity));
    ONCILLA_ASSIGN(y, b.Add("Where", {}, {hidden, off, y}, "scores_seen"));
    ONCILLA_ASSIGN(y, AddSoftmaxWithSink(b, y, sink));
  }
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(g.wide, 0));
  ONCILLA_ASSIGN(y, b.Add("Where", {}, {hidden, zero, y}, "shown_wide"));
  return b.Cast(y, b.dtype(), "shown");
}

// Attention over the cache in its layout. Also returns the scores if they are requested.
Result<Values> Attend(OnnxLowering& b, const Grouped& g, const Cache& cache, int64_t window) {
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
  // A padding row may be so late that its window contains no key; its result is then zero.
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
  ONCILLA_ASSIGN(ValueId y, AddAttention(b, attrs, parts, "by_head"));
  ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  if (!b.wants(3)) return Values{y, kNoValue};
  ONCILLA_ASSIGN(const ValueId shown, AddScoresShown(b, g, cache, attrs, parts.sink));
  return Values{y, shown};
}

Result<Values> LowerGroupQueryAttention(OnnxLowering& b) {
  ONCILLA_TRY(CheckKind(b));
  ONCILLA_ASSIGN(Grouped g, ReadParts(b));
  ONCILLA_TRY(ReadForms(b, g));
  ONCILLA_TRY(FindPlaces(b, kGrouped, g));
  ONCILLA_TRY(Norm(b, g));
  ONCILLA_TRY(Rotate(b, kGrouped, kPlaces, g));
  ONCILLA_ASSIGN(const int64_t window, b.Int("local_window_size", -1));
  ONCILLA_ASSIGN(const bool windowed, b.Flag("sliding_window_cache", false));
  ONCILLA_ASSIGN(const Cache cache,
                 windowed ? AddWindowedCache(b, g, window) : AddWholeCache(b, g));
  if (windowed && b.wants(3)) return Unsupported("with qk_output and sliding_window_cache");
  ONCILLA_ASSIGN(const Values y, Attend(b, g, cache, window));
  return Values{y[0], cache.present_keys, cache.present_values, y[1]};
}

// Which blocks of keys each block of queries sees: bool[layouts, blocks, blocks]. The file lists
// the visible columns of each row.
Result<Tensor> ReadBlocks(OnnxLowering& b) {
  const char* what = "the blocks' rows and columns";
  ONCILLA_ASSIGN(const std::vector<int64_t> rows, b.KnownInts(kBlockRows, what));
  ONCILLA_ASSIGN(const std::vector<int64_t> columns, b.KnownInts(kBlockColumns, what));
  const Shape& row_shape = b.in_fact(kBlockRows).value.shape();
  const Shape& column_shape = b.in_fact(kBlockColumns).value.shape();
  if (row_shape.rank() != 2 || column_shape.rank() != 2 || row_shape[0] != column_shape[0] ||
      row_shape[0] < 1 || row_shape[1] < 2) {
    return InvalidArgument("blocks' rows of the shape ", row_shape, " and columns of ",
                           column_shape);
  }
  const int64_t layouts = row_shape[0], blocks = row_shape[1] - 1;
  constexpr int64_t kMostBlocks = int64_t{1} << 28;
  if (SaturatingMul(layouts, SaturatingMul(blocks, blocks)) > kMostBlocks) {
    return Exhausted(layouts, " layouts of ", blocks, " x ", blocks, " blocks");
  }
  ONCILLA_ASSIGN(Tensor table, Tensor::Allocate({DType::kBool, {layouts, blocks, blocks}}));
  const auto seen = table.MutableAs<uint8_t>();
  for (int64_t i = 0; i < layouts; ++i) {
    const int64_t* ends = rows.data() + i * row_shape[1];
    for (int64_t row = 0; row < blocks; ++row) {
      if (ends[row] < 0 || ends[row + 1] < ends[row] || ends[row + 1] > column_shape[1]) {
        return InvalidArgument("row ", row, " of layout ", i, " has the columns from ", ends[row],
                               " to ", ends[row + 1], " of ", column_shape[1]);
      }
      for (int64_t at = ends[row]; at < ends[row + 1]; ++at) {
        const int64_t column = columns[static_cast<size_t>(i * column_shape[1] + at)];
        if (column < 0 || column >= blocks) {
          return InvalidArgument("layout ", i, " has a block in column ", column, " of ", blocks);
        }
        seen[static_cast<size_t>((i * blocks + row) * blocks + column)] = 1;
      }
    }
  }
  return table;
}

// Sets the bias of the scores [N, heads, L, keys] from the block layouts, which the heads use in
// turn.
Status HideBlocks(OnnxLowering& b, Grouped& g) {
  ONCILLA_ASSIGN(const int64_t size, b.NeedInt("sparse_block_size"));
  ONCILLA_ASSIGN(const Tensor seen, ReadBlocks(b));
  const int64_t layouts = seen.shape()[0], blocks = seen.shape()[1];
  if (size < 1 || g.heads % layouts != 0) {
    return InvalidArgument(g.heads, " heads with ", layouts, " layouts of blocks of ", size);
  }
  std::vector<int64_t> layout;
  for (int64_t head = 0; head < g.heads; ++head) layout.push_back(head % layouts);
  const ValueId width = b.Constant(Tensor::ScalarInt64(size));
  const ValueId last = b.Constant(Tensor::ScalarInt64(blocks - 1));
  const auto block = [&](ValueId places, const std::string& name) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId at, b.Add("FloorDiv", {}, {places, width}, name + "_of"));
    return b.Add("Min", {}, {at, last}, name);  // later blocks are hidden anyway, as future keys
  };
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId keys, b.Add("Range", {}, {none, g.total, one}, "key_places"));
  ONCILLA_ASSIGN(const ValueId key_block, block(keys, "key_block"));
  ONCILLA_ASSIGN(const ValueId query_block, block(g.places, "query_block"));
  // Gather by query first: a step has few queries, while the table covers the longest text.
  ONCILLA_ASSIGN(ValueId shown,
                 b.Add(GatherAttrs{.axis = 1}, {b.Constant(seen), query_block}, "by_query"));
  ONCILLA_ASSIGN(shown, b.Add(GatherAttrs{.axis = 3}, {shown, key_block}, "by_key"));
  ONCILLA_ASSIGN(shown, b.Transpose(shown, {1, 0, 2, 3}, "by_sample"));
  ONCILLA_ASSIGN(shown,
                 b.Add(GatherAttrs{.axis = 1}, {shown, b.Ints(std::move(layout))}, "by_head"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  ONCILLA_ASSIGN(const ValueId off, b.Scalar(b.dtype(), kMinusInfinity));
  ONCILLA_ASSIGN(g.bias, b.Add("Where", {}, {shown, zero, off}, "block_bias"));
  return {};
}

Result<Values> LowerSparseAttention(OnnxLowering& b) {
  ONCILLA_TRY(CheckInputs(b, kSparse));
  if (!b.has(kPastKey) || !b.has(kPastValue)) return DataLoss("the cache is missing");
  ONCILLA_ASSIGN(Grouped g, ReadParts(b));
  ONCILLA_TRY(FindPlaces(b, kSparse, g));
  ONCILLA_TRY(Rotate(b, kSparse, b.all_inputs().size(), g));
  ONCILLA_TRY(HideBlocks(b, g));
  ONCILLA_ASSIGN(const Cache cache, AddWholeCache(b, g));
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 0));
  AttentionAttrs attrs;
  attrs.scale = double{scale};
  attrs.right = 0;
  attrs.zero_blind = true;
  AttentionParts parts{g.q, cache.keys, cache.values};
  parts.lengths = cache.lengths;
  parts.starts = cache.starts;
  parts.mask = cache.bias;
  ONCILLA_ASSIGN(ValueId y, AddAttention(b, attrs, parts, "by_head_and_block"));
  ONCILLA_ASSIGN(y, JoinHeads(b, y, ""));
  return Values{y, cache.present_keys, cache.present_values};
}

// Sets the scores of words that would complete a sequence of `ngram_size` words which already
// occurs in the row to minus infinity.
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
    {"SparseAttention", 1, kNewestOnnxMicrosoft, 1, "", LowerSparseAttention},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftDecoderRows() { return kRows; }

}  // namespace oncilla
