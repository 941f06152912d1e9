// com.microsoft's ops on the tokens of a text: hashes of n-grams (Engram memories), and how far
// predicted tokens agree with the source (aggressive decoding).
#include <functional>
#include <limits>

#include "engine/import/onnx/lowering.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Result<ValueId> Part(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, int64_t axis,
                     const std::string& name) {
  return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({axis})}, name);
}

// Input indices of the two n-gram ops; the defaults are those of NGramHashMapping.
struct NGramInputs {
  size_t past = 3, offsets = 4, eos = 5, segments = 6;
};

struct NGrams {
  NGramInputs at;
  int64_t most = 0, heads = 0;  // the longest n-gram, and hashes of each length
  ValueId fill = kNoValue;      // stands before the first token: eos, or the padding
  bool resets = false;          // no n-gram extends across an eos
  int64_t history() const { return most - 1; }
};

Result<NGrams> ReadNGrams(OnnxLowering& b, const NGramInputs& at) {
  NGrams grams;
  grams.at = at;
  ONCILLA_ASSIGN(grams.most, b.NeedInt("max_ngram_size"));
  ONCILLA_ASSIGN(grams.heads, b.NeedInt("n_head_per_ngram"));
  ONCILLA_ASSIGN(const int64_t padding, b.NeedInt("pad_id"));
  ONCILLA_ASSIGN(grams.resets, b.Flag("reset_on_eos", false));
  constexpr int64_t kMostSize = 64, kMostHeads = int64_t{1} << 16;
  if (b.dtype() == DType::kI32 && padding != static_cast<int32_t>(padding)) {
    return InvalidArgument("pad_id is ", padding, " for tokens of i32");
  }
  if (grams.most < 2 || grams.most > kMostSize || grams.heads < 1 || grams.heads > kMostHeads) {
    return InvalidArgument("max_ngram_size is ", grams.most, ", n_head_per_ngram ", grams.heads);
  }
  if (b.has(at.eos)) {
    ONCILLA_ASSIGN(grams.fill, b.ToScalar(b.in(at.eos), "eos"));
  } else {
    grams.resets = false;
    ONCILLA_ASSIGN(grams.fill,
                   b.Cast(b.Constant(Tensor::ScalarInt64(padding)), b.dtype(), "padding"));
  }
  return grams;
}

// The hashes of n-grams of all lengths, along a new last axis. `before(k)` gives the token k
// positions before each token; `cut(k)` whether a segment ends between that token and the next, or
// kNoValue if there are no segments.
Result<ValueId> AddHashes(OnnxLowering& b, const NGrams& grams,
                          const std::function<Result<ValueId>(int64_t k)>& before,
                          const std::function<Result<ValueId>(int64_t k)>& cut) {
  ValueId mix = kNoValue, ended = kNoValue;
  Values hashes;
  // Lists of another length fail here rather than being cut or stretched.
  const ValueId count = b.Ints({grams.history() * grams.heads});
  ONCILLA_ASSIGN(const ValueId all_sizes, b.Add(ReshapeAttrs{}, {b.in(2), count}, "all_sizes"));
  for (int64_t k = 0; k < grams.most; ++k) {
    const auto name = [&](const char* what) { return StrCat(what, k); };
    const auto join = [&](ValueId more) -> Status {
      if (more == kNoValue) return {};
      if (ended != kNoValue) {
        ONCILLA_ASSIGN(more, b.Add("Or", {}, {ended, more}, name("ended")));
      }
      ended = more;
      return {};
    };
    ONCILLA_ASSIGN(ValueId token, before(k));
    if (k > 0) {
      ONCILLA_ASSIGN(const ValueId border, cut(k));
      ONCILLA_TRY(join(border));
      if (grams.resets) {
        ONCILLA_ASSIGN(const ValueId last, b.Add("Equal", {}, {token, grams.fill}, name("eos")));
        ONCILLA_TRY(join(last));
      }
      if (ended != kNoValue) {
        ONCILLA_ASSIGN(token, b.Add("Where", {}, {ended, grams.fill, token}, name("kept")));
      }
    }
    ONCILLA_ASSIGN(ValueId factor, Part(b, b.in(1), k, k + 1, 0, name("factor")));
    ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {token, factor}, name("product")));
    if (k == 0) {
      mix = product;
      continue;
    }
    ONCILLA_ASSIGN(mix, b.Add("BitXor", {}, {mix, product}, name("mix")));
    ONCILLA_ASSIGN(const ValueId each, b.Unsqueeze(mix, {-1}, name("mix_of_heads")));
    ONCILLA_ASSIGN(const ValueId sizes, Part(b, all_sizes, (k - 1) * grams.heads, k * grams.heads,
                                             0, name("vocabularies")));
    ONCILLA_ASSIGN(const ValueId hash, b.Add("FloorMod", {}, {each, sizes}, name("hash")));
    hashes.push_back(hash);
  }
  const bool moved = b.has(grams.at.offsets);
  ONCILLA_ASSIGN(ValueId y, b.Add(ConcatAttrs{.axis = -1}, hashes, moved ? "hashes" : ""));
  if (moved) {
    ONCILLA_ASSIGN(const ValueId offsets,
                   b.Add(ReshapeAttrs{}, {b.in(grams.at.offsets), count}, "offsets"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, offsets}));
  }
  return y;
}

// Samples of equal length: tokens [N, L].
Result<Values> LowerNGramHashMapping(OnnxLowering& b) {
  ONCILLA_ASSIGN(const NGrams grams, ReadNGrams(b, {}));
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the list of tokens"));
  if (rank != 2) return InvalidArgument("tokens of rank ", rank, ", not 2");
  const int64_t history = grams.history();
  ONCILLA_ASSIGN(ValueId samples, b.Sizes(b.in(0), 0, 1, "samples"));
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add(ConcatAttrs{.axis = 0}, {samples, b.Ints({history})}, "history_sizes"));
  ValueId past = b.in(grams.at.past);
  if (past == kNoValue) {
    ONCILLA_ASSIGN(past, b.Add("Expand", {}, {grams.fill, sizes}, "history"));
  }
  ONCILLA_ASSIGN(const ValueId all, b.Add(ConcatAttrs{.axis = 1}, {past, b.in(0)}, "all"));
  // x has `history` extra columns in front. Returns the L columns that lie k before the last L.
  const auto earlier = [&](ValueId x, int64_t k, const std::string& name) {
    return Part(b, x, history - k, k == 0 ? kEnd : -k, 1, name);
  };
  ValueId borders = kNoValue;  // bool: a segment begins with this token
  if (b.has(grams.at.segments)) {
    const ValueId segments = b.in(grams.at.segments);
    ONCILLA_ASSIGN(const ValueId here, Part(b, segments, 1, kEnd, 1, "segments_here"));
    ONCILLA_ASSIGN(const ValueId there, Part(b, segments, 0, -1, 1, "segments_before"));
    ONCILLA_ASSIGN(const ValueId begins, b.Add("NotEqual", {}, {here, there}, "begins"));
    // It is unknown whether a segment begins with the first token or with those before it.
    ONCILLA_ASSIGN(const ValueId no, b.Scalar(DType::kBool, 0));
    ONCILLA_ASSIGN(const ValueId first_sizes,
                   b.Add(ConcatAttrs{.axis = 0}, {samples, b.Ints({history + 1})}, "open_sizes"));
    ONCILLA_ASSIGN(const ValueId open, b.Add("Expand", {}, {no, first_sizes}, "open"));
    ONCILLA_ASSIGN(borders, b.Add(ConcatAttrs{.axis = 1}, {open, begins}, "borders"));
  }
  ONCILLA_ASSIGN(const ValueId y,
                 AddHashes(
                     b, grams, [&](int64_t k) { return earlier(all, k, StrCat("token", k)); },
                     [&](int64_t k) -> Result<ValueId> {
                       if (borders == kNoValue) return kNoValue;
                       return earlier(borders, k - 1, StrCat("border", k));
                     }));
  if (!b.wants(1)) return Values{y};
  ONCILLA_ASSIGN(const ValueId present, Part(b, all, -history, kEnd, 1, "present_ids"));
  return Values{y, present};
}

// Tokens of several requests in one vector [T], with the bounds of each request.
class PackedTokens {
 public:
  static Result<PackedTokens> Of(OnnxLowering& b, const NGrams& grams) {
    PackedTokens tokens(b, grams);
    ONCILLA_ASSIGN(tokens.bounds_, b.Cast(b.in(kBounds), DType::kI64, "bounds"));
    ONCILLA_ASSIGN(tokens.ends_, Part(b, tokens.bounds_, 1, kEnd, 0, "ends"));
    ONCILLA_ASSIGN(tokens.starts_, Part(b, tokens.bounds_, 0, -1, 0, "starts"));
    ONCILLA_TRY(tokens.CheckBounds());
    tokens.ids_.own = b.in(0);
    tokens.ids_.fill = grams.fill;
    tokens.segments_.own = b.in(grams.at.segments);
    for (auto& [list, input, name] :
         {std::tuple<List&, size_t, const char*>{tokens.ids_, grams.at.past, "history"},
          {tokens.segments_, kPastSegments, "segment_history"}}) {
      if (!b.has(input)) continue;
      ONCILLA_ASSIGN(const ValueId requests, b.Sizes(tokens.starts_, 0, 1, StrCat(name, "_rows")));
      ONCILLA_ASSIGN(const ValueId sizes,
                     b.Add(ConcatAttrs{.axis = 0}, {requests, b.Ints({grams.history()})},
                           StrCat(name, "_sizes")));
      ONCILLA_ASSIGN(const ValueId rows,
                     b.Add(ReshapeAttrs{}, {b.in(input), sizes}, StrCat(name, "_of_requests")));
      ONCILLA_ASSIGN(list.past, b.Add(ReshapeAttrs{}, {rows, b.Ints({-1})}, name));
    }
    return tokens;
  }
  // For each token, the one k places before it in its request.
  Result<ValueId> Before(int64_t k) { return Before(ids_, k, StrCat("token", k)); }
  // Whether a segment ends behind the token k places before each, and before the next one.
  Result<ValueId> SegmentEnds(int64_t k) {
    if (segments_.own == kNoValue) return kNoValue;
    ONCILLA_ASSIGN(const ValueId there, Before(segments_, k, StrCat("segment_there", k)));
    ONCILLA_ASSIGN(const ValueId behind, Before(segments_, k - 1, StrCat("segment_behind", k)));
    return b_.Add("NotEqual", {}, {there, behind}, StrCat("border", k));
  }
  // The last tokens of each request, and their segments.
  Result<ValueId> Last() { return Last(ids_, "present_ids"); }
  Result<ValueId> LastSegments() { return Last(segments_, "present_segment_ids"); }
  // The last tokens after each of the first `most` ones of each request, as far as the request has
  // so many and `counts` asks for them; the rest is `padding`: [requests, most, history].
  Result<ValueId> LastOfBeginnings(int64_t most, ValueId counts, ValueId padding) {
    ONCILLA_ASSIGN(ValueId lengths, b_.Add("Sub", {}, {ends_, starts_}, "state_lengths"));
    ONCILLA_ASSIGN(const ValueId requests, b_.Sizes(starts_, 0, 1, "state_request_count"));
    ONCILLA_ASSIGN(ValueId wanted, b_.Add(ReshapeAttrs{}, {counts, requests}, "state_count_list"));
    ONCILLA_ASSIGN(wanted, b_.Cast(wanted, DType::kI64, "state_counts"));
    ONCILLA_ASSIGN(wanted, b_.Add("Min", {}, {wanted, lengths}, "state_counts_within"));
    ONCILLA_ASSIGN(wanted, b_.Unsqueeze(wanted, {1, 2}, "state_counts_upright"));
    ONCILLA_ASSIGN(lengths, b_.Unsqueeze(lengths, {1, 2}, "state_lengths_upright"));
    std::vector<int64_t> slots, places;
    for (int64_t i = 0; i < most; ++i) {
      slots.push_back(i);
      for (int64_t j = 1; j <= grams_.history(); ++j) places.push_back(i + j - grams_.history());
    }
    const ValueId slot = b_.Constant(Tensor::Of<int64_t>(DType::kI64, {1, most, 1}, slots));
    ValueId place =
        b_.Constant(Tensor::Of<int64_t>(DType::kI64, {1, most, grams_.history()}, places));
    ONCILLA_ASSIGN(const ValueId last,
                   b_.Add("Sub", {}, {lengths, b_.Ints({1})}, "state_last_place"));
    ONCILLA_ASSIGN(place, b_.Add("Min", {}, {place, last}, "state_places"));
    ONCILLA_ASSIGN(const ValueId start, b_.Unsqueeze(starts_, {1, 2}, "state_starts"));
    ONCILLA_ASSIGN(ValueId request, Count(starts_, "state_requests"));
    ONCILLA_ASSIGN(request, b_.Unsqueeze(request, {1, 2}, "state_requests_upright"));
    ONCILLA_ASSIGN(const ValueId all, At(ids_, place, start, request, "states"));
    ONCILLA_ASSIGN(const ValueId used, b_.Add("Less", {}, {slot, wanted}, "states_used"));
    return b_.Add("Where", {}, {used, all, padding}, "state_update");
  }

 private:
  static constexpr size_t kBounds = 3, kPastSegments = 8;
  // Numbers of the tokens, of those before each request, and what stands before these where there
  // are none: the first of the request's own if `fill` is kNoValue.
  struct List {
    ValueId own = kNoValue, past = kNoValue, fill = kNoValue;
  };
  PackedTokens(OnnxLowering& b, const NGrams& grams) : b_(b), grams_(grams) {}

  // Requests that are not one after the other, from the first token to the last, fail the run.
  Status CheckBounds() {
    const auto all = [&](ValueId x, const char* name) {
      return b_.Add("ReduceAll", ReduceAttrs{.keep_dims = false}, {x, b_.Ints({0})}, name);
    };
    ONCILLA_ASSIGN(ValueId ordered, b_.Add("Less", {}, {starts_, ends_}, "bounds_ordered"));
    ONCILLA_ASSIGN(ordered, all(ordered, "bounds_all_ordered"));
    ONCILLA_ASSIGN(const ValueId first, Part(b_, bounds_, 0, 1, 0, "bounds_first"));
    ONCILLA_ASSIGN(const ValueId last, Part(b_, bounds_, -1, kEnd, 0, "bounds_last"));
    ONCILLA_ASSIGN(const ValueId given,
                   b_.Add(ConcatAttrs{.axis = 0}, {first, last}, "bounds_outer"));
    ONCILLA_ASSIGN(const ValueId count, b_.Sizes(b_.in(0), 0, 1, "token_count"));
    ONCILLA_ASSIGN(const ValueId right,
                   b_.Add(ConcatAttrs{.axis = 0}, {b_.Ints({0}), count}, "bounds_outer_right"));
    ONCILLA_ASSIGN(ValueId outer, b_.Add("Equal", {}, {given, right}, "bounds_outer_equal"));
    ONCILLA_ASSIGN(outer, all(outer, "bounds_outer_all_equal"));
    ONCILLA_ASSIGN(const ValueId fine, b_.Add("And", {}, {ordered, outer}, "bounds_fine"));
    const ValueId text = b_.Constant(
        Tensor::Strings({}, {"cumulative_sequence_length does not cut the tokens in requests:"}));
    return b_.AddAll(AssertAttrs{}, {fine, text, bounds_}, "bounds_check").status();
  }

  Result<ValueId> Before(const List& list, int64_t k, const std::string& name) {
    if (k == 0) return list.own;
    ONCILLA_TRY(FindPlaces());
    ONCILLA_ASSIGN(const ValueId back, b_.Add("Sub", {}, {local_, b_.Ints({k})}, name + "_back"));
    return At(list, back, start_, request_, name);
  }
  Result<ValueId> Last(const List& list, const std::string& name) {
    ONCILLA_ASSIGN(ValueId back, b_.Add("Sub", {}, {ends_, starts_}, name + "_lengths"));
    ONCILLA_ASSIGN(back, b_.Unsqueeze(back, {1}, name + "_length_of_places"));
    std::vector<int64_t> places;
    for (int64_t j = 0; j < grams_.history(); ++j) places.push_back(j - grams_.history());
    ONCILLA_ASSIGN(back, b_.Add("Add", {}, {back, b_.Ints(std::move(places))}, name + "_places"));
    ONCILLA_ASSIGN(const ValueId start, b_.Unsqueeze(starts_, {1}, name + "_start"));
    ONCILLA_ASSIGN(ValueId request, Count(starts_, name + "_requests"));
    ONCILLA_ASSIGN(request, b_.Unsqueeze(request, {1}, name + "_request"));
    return At(list, back, start, request, name);
  }

  // 0, 1, .. for each element of a vector.
  Result<ValueId> Count(ValueId x, const std::string& name) {
    ONCILLA_ASSIGN(ValueId size, b_.Sizes(x, 0, 1, name + "_size"));
    ONCILLA_ASSIGN(size, b_.Add("Squeeze", {}, {size, b_.Ints({0})}, name + "_number"));
    const ValueId none = b_.Constant(Tensor::ScalarInt64(0));
    const ValueId one = b_.Constant(Tensor::ScalarInt64(1));
    return b_.Add("Range", {}, {none, size, one}, name);
  }
  // Finds the request of each token, and its position in the request.
  Status FindPlaces() {
    if (local_ != kNoValue) return {};
    ONCILLA_ASSIGN(const ValueId place, Count(b_.in(0), "place"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(place, {1}, "place_of_requests"));
    ONCILLA_ASSIGN(const ValueId over, b_.Add("LessEqual", {}, {ends_, each}, "over"));
    ONCILLA_ASSIGN(const ValueId number, b_.Cast(over, DType::kI64, "over_number"));
    ONCILLA_ASSIGN(request_, b_.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                    {number, b_.Ints({1})}, "request"));
    ONCILLA_ASSIGN(start_, b_.Add("Gather", {}, {starts_, request_}, "start"));
    ONCILLA_ASSIGN(local_, b_.Add("Sub", {}, {place, start_}, "local"));
    return {};
  }
  // What stands at places of requests; negative ones are of what came before.
  Result<ValueId> At(const List& list, ValueId place, ValueId start, ValueId request,
                     const std::string& name) {
    const int64_t history = grams_.history();
    const ValueId zero = b_.Constant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(const ValueId within,
                   b_.Add("GreaterEqual", {}, {place, zero}, name + "_within"));
    ONCILLA_ASSIGN(ValueId own, b_.Add("Max", {}, {place, zero}, name + "_own"));
    ONCILLA_ASSIGN(own, b_.Add("Add", {}, {own, start}, name + "_at"));
    ONCILLA_ASSIGN(own, b_.Add("Gather", {}, {list.own, own}, name + "_read"));
    ValueId old = list.fill;
    if (list.past == kNoValue && old == kNoValue) {
      ONCILLA_ASSIGN(old, b_.Add("Gather", {}, {list.own, start}, name + "_first"));
    }
    if (list.past != kNoValue) {
      const ValueId length = b_.Constant(Tensor::ScalarInt64(history));
      ONCILLA_ASSIGN(const ValueId row, b_.Add("Mul", {}, {request, length}, name + "_row"));
      ONCILLA_ASSIGN(
          old, b_.Add("Min", {}, {place, b_.Constant(Tensor::ScalarInt64(-1))}, name + "_old"));
      ONCILLA_ASSIGN(old, b_.Add("Add", {}, {old, length}, name + "_old_place"));
      ONCILLA_ASSIGN(old, b_.Add("Max", {}, {old, zero}, name + "_old_within"));
      ONCILLA_ASSIGN(old, b_.Add("Add", {}, {old, row}, name + "_old_at"));
      ONCILLA_ASSIGN(old, b_.Add("Gather", {}, {list.past, old}, name + "_old_read"));
    }
    return b_.Add("Where", {}, {within, own, old}, name);
  }

  OnnxLowering& b_;
  const NGrams& grams_;
  List ids_, segments_;
  ValueId bounds_ = kNoValue, ends_ = kNoValue, starts_ = kNoValue;
  ValueId request_ = kNoValue, start_ = kNoValue, local_ = kNoValue;
};

// Inputs of the op whose sizes say nothing else, so that a wrong one would not tell.
Status CheckPackedInputs(OnnxLowering& b, const NGrams& grams) {
  constexpr size_t kSizes = 2, kPastSegments = 8, kCaptureCount = 9;
  const PartialShape bounds = b.in_fact(3).shape;
  const Dim requests =
      bounds.ranked() && bounds.rank() == 1 && bounds[0].known() ? Dim(bounds[0].size - 1) : Dim();
  const Dim hashes(grams.history() * grams.heads), history(grams.history());
  const std::pair<size_t, PartialShape> shapes[] = {
      {0, PartialShape({Dim()})},
      {kSizes, PartialShape({hashes})},
      {3, PartialShape({Dim()})},
      {grams.at.past, PartialShape({requests, history})},
      {grams.at.offsets, PartialShape({hashes})},
      {grams.at.segments, PartialShape({Dim()})},
      {kPastSegments, PartialShape({requests, history})},
      {kCaptureCount, PartialShape({requests})},
  };
  for (const auto& [input, shape] : shapes) {
    if (!b.has(input) || MergeShapes(b.in_fact(input).shape, shape).ok()) continue;
    return InvalidArgument("input ", input, " is ", b.in_fact(input), ", not of the shape ", shape);
  }
  if (requests.known() && requests.size < 1) return InvalidArgument("there are no requests");
  return {};
}

Result<Values> LowerVarlenNGramHashMapping(OnnxLowering& b) {
  ONCILLA_ASSIGN(const NGrams grams,
                 ReadNGrams(b, {.past = 4, .offsets = 5, .eos = 6, .segments = 7}));
  ONCILLA_TRY(CheckPackedInputs(b, grams));
  constexpr size_t kPastSegments = 8, kCaptureCount = 9;
  constexpr int64_t kMostStates = 8;
  ONCILLA_ASSIGN(const int64_t kept, b.Int("state_update_capacity", 0));
  if (kept < 0 || kept > kMostStates || b.has(kCaptureCount) != (kept > 0)) {
    return InvalidArgument("state_update_capacity is ", kept,
                           b.has(kCaptureCount) ? "" : ", and capture_count is missing");
  }
  if (!b.has(grams.at.segments) && (b.has(kPastSegments) || b.wants(2))) {
    return InvalidArgument("segments of earlier tokens without those of the tokens");
  }
  ONCILLA_ASSIGN(PackedTokens tokens, PackedTokens::Of(b, grams));
  Values out(4, kNoValue);
  ONCILLA_ASSIGN(out[0], AddHashes(
                             b, grams, [&](int64_t k) { return tokens.Before(k); },
                             [&](int64_t k) { return tokens.SegmentEnds(k); }));
  if (b.wants(1)) {
    ONCILLA_ASSIGN(out[1], tokens.Last());
  }
  if (b.wants(2)) {
    ONCILLA_ASSIGN(out[2], tokens.LastSegments());
  }
  if (b.wants(3)) {
    if (kept == 0) return InvalidArgument("asks for states, and state_update_capacity is 0");
    ONCILLA_ASSIGN(const int64_t padding, b.NeedInt("pad_id"));
    ONCILLA_ASSIGN(const ValueId pad,
                   b.Cast(b.Constant(Tensor::ScalarInt64(padding)), b.dtype(), "pad_of_states"));
    ONCILLA_ASSIGN(out[3], tokens.LastOfBeginnings(kept, b.in(kCaptureCount), pad));
  }
  return out;
}

// Inputs of BifurcationDetector.
enum : size_t { kSource, kCurrent, kMatched, kPredicted };

// The current tokens, followed by the predicted ones up to and including the first that differs
// from the source.
Result<ValueId> AddFollowed(OnnxLowering& b) {
  if (!b.has(kPredicted)) return b.Add("Identity", {}, {b.in(kCurrent)});
  ONCILLA_ASSIGN(const ValueId from,
                 b.Add(ReshapeAttrs{}, {b.in(kMatched), b.Ints({1})}, "matched"));
  ONCILLA_ASSIGN(const ValueId rest,
                 b.Add("Slice", {}, {b.in(kSource), from, b.Ints({kEnd}), b.Ints({0})}, "rest"));
  ONCILLA_ASSIGN(ValueId compared, Part(b, b.in(kPredicted), 0, -1, 0, "predicted_rest"));
  // The prediction must have one token more than the rest of the source; other lengths fail here.
  ONCILLA_ASSIGN(const ValueId left, b.Sizes(rest, 0, 1, "rest_size"));
  ONCILLA_ASSIGN(compared, b.Add(ReshapeAttrs{}, {compared, left}, "compared"));
  ONCILLA_ASSIGN(const ValueId same, b.Add("Equal", {}, {compared, rest}, "same"));
  ONCILLA_ASSIGN(const ValueId number, b.Cast(same, DType::kI64, "same_number"));
  ONCILLA_ASSIGN(const ValueId run,
                 b.Add("CumProd", {}, {number, b.Constant(Tensor::ScalarInt64(0))}, "same_so_far"));
  ONCILLA_ASSIGN(ValueId count, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true},
                                      {run, b.Ints({0})}, "followed"));
  ONCILLA_ASSIGN(count, b.Add("Add", {}, {count, b.Ints({1})}, "taken"));
  ONCILLA_ASSIGN(
      const ValueId taken,
      b.Add("Slice", {}, {b.in(kPredicted), b.Ints({0}), count, b.Ints({0})}, "prediction"));
  return b.Add(ConcatAttrs{.axis = 0}, {b.in(kCurrent), taken});
}

// The position in the source after the match of the last n tokens, for the largest n from
// min_ngram_size up that still matches; n stops growing when a match ends the source. -1 if there
// is no match, or several for that n.
Result<ValueId> AddSuffixMatch(OnnxLowering& b, ValueId tokens, int64_t least, int64_t most) {
  const auto number = [&](int64_t n) { return b.Constant(Tensor::ScalarInt64(n)); };
  const auto size = [&](ValueId x, const std::string& name) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId sizes, b.Sizes(x, 0, 1, name + "_sizes"));
    return b.Add("Squeeze", {}, {sizes, b.Ints({0})}, name + "_size");
  };
  ONCILLA_ASSIGN(const ValueId source_size, size(b.in(kSource), "source"));
  ONCILLA_ASSIGN(const ValueId tokens_size, size(tokens, "tokens"));
  // Zeros in front, so that there is something to compare if there are fewer tokens than `most`.
  const ValueId room = b.Ints(std::vector<int64_t>(static_cast<size_t>(most), 0));
  ONCILLA_ASSIGN(const ValueId words, b.Add(ConcatAttrs{.axis = 0}, {room, tokens}, "words"));
  ValueId found = number(-1);
  ONCILLA_ASSIGN(ValueId going, b.Scalar(DType::kBool, 1));
  for (int64_t n = least; n <= most; ++n) {
    const auto name = [&](const char* what) { return StrCat(what, n); };
    ValueId match = kNoValue;  // by position in the source
    for (int64_t i = 0; i < n; ++i) {
      const int64_t left = n - i;
      ONCILLA_ASSIGN(const ValueId word, Part(b, words, -left, left == 1 ? kEnd : 1 - left, 0,
                                              StrCat("word", n, "_", i)));
      ONCILLA_ASSIGN(const ValueId there, Part(b, b.in(kSource), i, left == 1 ? kEnd : 1 - left, 0,
                                               StrCat("there", n, "_", i)));
      ONCILLA_ASSIGN(ValueId same, b.Add("Equal", {}, {there, word}, StrCat("same", n, "_", i)));
      if (match != kNoValue) {
        ONCILLA_ASSIGN(same, b.Add("And", {}, {match, same}, StrCat("match", n, "_", i)));
      }
      match = same;
    }
    ONCILLA_ASSIGN(const ValueId ones, b.Cast(match, DType::kI64, name("matches")));
    ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                              {ones, b.Ints({0})}, name("count")));
    // The position of the first match is the number of positions before any match.
    ONCILLA_ASSIGN(const ValueId so_far, b.Add("CumSum", {}, {ones, number(0)}, name("so_far")));
    ONCILLA_ASSIGN(ValueId before, b.Add("Equal", {}, {so_far, number(0)}, name("before")));
    ONCILLA_ASSIGN(before, b.Cast(before, DType::kI64, name("before_number")));
    ONCILLA_ASSIGN(ValueId next, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                       {before, b.Ints({0})}, name("first")));
    ONCILLA_ASSIGN(next, b.Add("Add", {}, {next, number(n)}, name("next")));
    ONCILLA_ASSIGN(const ValueId fits,
                   b.Add("GreaterEqual", {}, {tokens_size, number(n)}, name("fits")));
    ONCILLA_ASSIGN(const ValueId any, b.Add("Greater", {}, {count, number(0)}, name("any")));
    ONCILLA_ASSIGN(going, b.Add("And", {}, {going, fits}, name("going_fits")));
    ONCILLA_ASSIGN(going, b.Add("And", {}, {going, any}, name("going_any")));
    ONCILLA_ASSIGN(const ValueId several,
                   b.Add("Greater", {}, {count, number(1)}, name("several")));
    ONCILLA_ASSIGN(const ValueId place,
                   b.Add("Where", {}, {several, number(-1), next}, name("unique")));
    ONCILLA_ASSIGN(found, b.Add("Where", {}, {going, place, found}, name("found")));
    ONCILLA_ASSIGN(const ValueId inside, b.Add("Less", {}, {next, source_size}, name("inside")));
    ONCILLA_ASSIGN(going, b.Add("And", {}, {going, inside}, name("going")));
  }
  return b.Add(ReshapeAttrs{}, {found, b.Ints({1})}, "suffix_match");
}

Result<Values> LowerBifurcationDetector(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t least, b.Int("min_ngram_size", 1));
  ONCILLA_ASSIGN(const int64_t most, b.Int("max_ngram_size", 3));
  constexpr int64_t kMost = 64;
  if (least < 1 || most < least || most > kMost) {
    return InvalidArgument("n-grams of ", least, " to ", most, " tokens");
  }
  ONCILLA_ASSIGN(const ValueId tokens, AddFollowed(b));
  ONCILLA_ASSIGN(const ValueId match, AddSuffixMatch(b, tokens, least, most));
  return Values{tokens, match};
}

constexpr OnnxOpRow kRows[] = {
    {"BifurcationDetector", 1, kNewestOnnxMicrosoft, 3, "", LowerBifurcationDetector},
    {"NGramHashMapping", 1, kNewestOnnxMicrosoft, 3, "", LowerNGramHashMapping},
    {"VarlenNGramHashMapping", 1, kNewestOnnxMicrosoft, 4, "", LowerVarlenNGramHashMapping},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftTokenRows() { return kRows; }

}  // namespace oncilla
