// Rotary position embeddings of ONNX and com.microsoft.
#include "engine/import/onnx/ops/attention.h"

namespace oncilla {
namespace {

// A range of x's last axis.
Result<ValueId> Part(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, int64_t step,
                     const std::string& name) {
  return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({-1}), b.Ints({step})},
               name);
}

}  // namespace

Result<ValueId> AddRotation(OnnxLowering& b, ValueId x, ValueId cosine, ValueId sine,
                            int64_t turned, bool interleaved) {
  ONCILLA_ASSIGN(const int64_t size, KnownSize(b, x, 3, "the size of a head"));
  if (turned == 0) turned = size;
  if (turned < 0 || turned > size || turned % 2 != 0) {
    return InvalidArgument("rotary_embedding_dim is ", turned, " of ", size);
  }
  const int64_t half = turned / 2, step = interleaved ? 2 : 1;
  ONCILLA_ASSIGN(const ValueId first, Part(b, x, 0, interleaved ? turned : half, step, "first"));
  ONCILLA_ASSIGN(const ValueId second, Part(b, x, interleaved ? 1 : half, turned, step, "second"));
  const auto product = [&](ValueId part, ValueId wave, const char* name) {
    return b.Add("Mul", {}, {part, wave}, name);
  };
  ONCILLA_ASSIGN(const ValueId a, product(first, cosine, "first_cosine"));
  ONCILLA_ASSIGN(const ValueId c, product(second, sine, "second_sine"));
  ONCILLA_ASSIGN(const ValueId d, product(first, sine, "first_sine"));
  ONCILLA_ASSIGN(const ValueId e, product(second, cosine, "second_cosine"));
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
  if (parts.size() == 1) return parts[0];
  return b.Add(ConcatAttrs{.axis = -1}, parts, "turned");
}

namespace {

// Inputs X, cosines, sines and positions. In com.microsoft, a single position is that of the first
// row.
struct Rotary {
  size_t cosine = 1, sine = 2, places = 3;
};

// Positions for [N] samples of L rows, if one number states where the first row is.
Result<ValueId> PlacesFrom(OnnxLowering& b, ValueId start, ValueId x, int axis) {
  ONCILLA_ASSIGN(ValueId count, b.Sizes(x, axis, axis + 1, "count"));
  ONCILLA_ASSIGN(count, b.Add("Squeeze", {}, {count, b.Ints({0})}, "rows"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId row, b.Add("Range", {}, {none, count, one}, "row"));
  ONCILLA_ASSIGN(row, b.Add("Add", {}, {row, start}, "place"));
  return b.Unsqueeze(row, {0}, "places");
}

Result<Values> Rotate(OnnxLowering& b, const Rotary& at) {
  ONCILLA_ASSIGN(const bool interleaved, b.Flag("interleaved", false));
  ONCILLA_ASSIGN(int64_t heads, b.Int("num_heads", 0));
  ONCILLA_ASSIGN(const int64_t turned, b.Int("rotary_embedding_dim", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 3 && rank != 4) return InvalidArgument("X must have rank 3 or 4, not ", rank);
  const PartialShape cache = b.in_fact(at.cosine).shape;
  if (rank == 3 && heads == 0 && turned == 0 && at.cosine != 1) {
    // In com.microsoft, the cache's width determines the size of a head.
    const PartialShape shape = b.in_fact(0).shape;
    if (!shape.ranked() || !shape[2].known() || !cache.ranked() || cache.rank() != 2 ||
        !cache[1].known() || cache[1].size < 1) {
      return Unsupported("the number of heads is not known");
    }
    heads = shape[2].size / (2 * cache[1].size);
  }
  ValueId x = b.in(0);
  if (rank == 3) {
    if (heads < 1) return InvalidArgument("num_heads is missing");
    ONCILLA_ASSIGN(
        x, b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints({0, 0, heads, -1})}, "heads"));
  }
  ValueId places = b.in(at.places);
  if (places != kNoValue && at.cosine != 1) {
    ONCILLA_ASSIGN(const int place_rank, b.Rank(at.places, "the list of places"));
    if (place_rank == 1) {
      ONCILLA_ASSIGN(places, PlacesFrom(b, places, x, rank == 3 ? 1 : 2));
    }
  }
  // Cosines and sines as [N, L, half], broadcast over the heads.
  ValueId waves[2] = {b.in(at.cosine), b.in(at.sine)};
  for (int i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "cosine" : "sine";
    if (places != kNoValue) {
      ONCILLA_ASSIGN(waves[i], b.Add("Gather", {}, {waves[i], places}, name + "_at"));
    }
    ONCILLA_ASSIGN(waves[i], b.Unsqueeze(waves[i], {rank == 3 ? 2 : 1}, name));
  }
  ONCILLA_ASSIGN(const ValueId y, AddRotation(b, x, waves[0], waves[1], turned, interleaved));
  if (rank == 4) return One(b.Add("Identity", {}, {y}));
  return One(b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, -1})}));
}

Result<Values> LowerRotaryEmbedding(OnnxLowering& b) { return Rotate(b, {}); }

Result<Values> LowerMicrosoftRotary(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 1));
  ONCILLA_ASSIGN(const bool packed, b.Flag("is_packed_batching", false));
  if (scale != 1) return Unsupported("with a scale of ", scale);
  if (packed) return Unsupported("of samples of different lengths in one batch");
  return Rotate(b, {.cosine = 2, .sine = 3, .places = 1});
}

constexpr OnnxOpRow kRows[] = {
    {"RotaryEmbedding", 23, kNewestOnnxOpset, 3, "", LowerRotaryEmbedding},
};
constexpr OnnxOpRow kMicrosoftRows[] = {
    {"RotaryEmbedding", 1, kNewestOnnxMicrosoft, 4, "", LowerMicrosoftRotary},
};

}  // namespace

std::span<const OnnxOpRow> OnnxRotaryRows() { return kRows; }
std::span<const OnnxOpRow> MicrosoftRotaryRows() { return kMicrosoftRows; }

}  // namespace oncilla
