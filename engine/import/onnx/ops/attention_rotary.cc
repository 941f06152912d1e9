// Rotary position embeddings of ONNX and com.microsoft.
#include "engine/import/onnx/ops/attention.h"

namespace oncilla {
namespace {

// The elements [begin, end) of x's last axis, `step` apart.
Result<ValueId> Part(OnnxLowering& b, ValueId x, int64_t begin, int64_t end, int64_t step,
                     const std::string& name) {
  return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({-1}), b.Ints({step})},
               name);
}

// The type in which numbers of this one are multiplied and added.
DType WideOf(DType type) { return IsFloat(type) && BitsOf(type) == 16 ? DType::kF32 : type; }

}  // namespace

Result<ValueId> AddRotation(OnnxLowering& b, ValueId x, ValueId cosine, ValueId sine,
                            int64_t turned, bool interleaved) {
  ONCILLA_ASSIGN(const int64_t size, KnownSize(b, x, 3, "the size of a head"));
  if (turned == 0) turned = size;
  if (turned < 0 || turned > size || turned % 2 != 0) {
    return InvalidArgument("rotary_embedding_dim is ", turned, " of ", size);
  }
  const int64_t half = turned / 2, step = interleaved ? 2 : 1;
  ONCILLA_ASSIGN(ValueId first, Part(b, x, 0, interleaved ? turned : half, step, "first"));
  ONCILLA_ASSIGN(ValueId second, Part(b, x, interleaved ? 1 : half, turned, step, "second"));
  // Differences of products are far less exact than the products where these nearly cancel, so
  // numbers of 16 bits are rounded once, at the end, as ONNX Runtime does.
  const DType type = b.fact(x).dtype, wide = WideOf(type);
  ONCILLA_ASSIGN(first, b.Cast(first, wide, "first_wide"));
  ONCILLA_ASSIGN(second, b.Cast(second, wide, "second_wide"));
  ONCILLA_ASSIGN(cosine, b.Cast(cosine, wide, "cosine_wide"));
  ONCILLA_ASSIGN(sine, b.Cast(sine, wide, "sine_wide"));
  const auto product = [&](ValueId part, ValueId wave, const char* name) {
    return b.Add("Mul", {}, {part, wave}, name);
  };
  ONCILLA_ASSIGN(const ValueId a, product(first, cosine, "first_cosine"));
  ONCILLA_ASSIGN(const ValueId c, product(second, sine, "second_sine"));
  ONCILLA_ASSIGN(const ValueId d, product(first, sine, "first_sine"));
  ONCILLA_ASSIGN(const ValueId e, product(second, cosine, "second_cosine"));
  ONCILLA_ASSIGN(ValueId real, b.Add("Sub", {}, {a, c}, "real"));
  ONCILLA_ASSIGN(ValueId imaginary, b.Add("Add", {}, {d, e}, "imaginary"));
  ONCILLA_ASSIGN(real, b.Cast(real, type, "real_narrow"));
  ONCILLA_ASSIGN(imaginary, b.Cast(imaginary, type, "imaginary_narrow"));
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
constexpr Rotary kMicrosoft = {.cosine = 2, .sine = 3, .places = 1};
constexpr const char* kWaveAt[2] = {"cosine_at", "sine_at"};

// Positions for samples of L rows, where `start` gives the position of the first row.
Result<ValueId> PlacesFrom(OnnxLowering& b, ValueId start, ValueId x, int axis) {
  ONCILLA_ASSIGN(ValueId count, b.Sizes(x, axis, axis + 1, "count"));
  ONCILLA_ASSIGN(count, b.Add("Squeeze", {}, {count, b.Ints({0})}, "rows"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId row, b.Add("Range", {}, {none, count, one}, "row"));
  ONCILLA_ASSIGN(row, b.Add("Add", {}, {row, start}, "place"));
  return b.Unsqueeze(row, {0}, "places");
}

// X by head: [N, L, heads, size], or [N, heads, L, size] if X has rank 4.
Result<ValueId> ReadHeads(OnnxLowering& b, const Rotary& at, int rank, int64_t turned) {
  ONCILLA_ASSIGN(int64_t heads, b.Int("num_heads", 0));
  if (rank != 3 && rank != 4) return InvalidArgument("X must have rank 3 or 4, not ", rank);
  if (rank == 4) return b.in(0);
  const PartialShape cache = b.in_fact(at.cosine).shape;
  if (heads == 0 && turned == 0 && at.cosine != 1) {
    // In com.microsoft, the cache's width determines the size of a head.
    const PartialShape shape = b.in_fact(0).shape;
    if (!shape.ranked() || !shape[2].known() || !cache.ranked() || cache.rank() != 2 ||
        !cache[1].known() || cache[1].size < 1) {
      return Unsupported("the number of heads is not known");
    }
    heads = shape[2].size / (2 * cache[1].size);
  }
  if (heads < 1) return InvalidArgument("num_heads is missing");
  return b.Add(ReshapeAttrs{.zero_copies = true}, {b.in(0), b.Ints({0, 0, heads, -1})}, "heads");
}

// X rotated by angles [N, L, half] that all heads share.
Result<Values> Turn(OnnxLowering& b, ValueId x, int rank, const ValueId (&waves)[2],
                    int64_t turned) {
  ONCILLA_ASSIGN(const bool interleaved, b.Flag("interleaved", false));
  const std::vector<int64_t> heads = {rank == 3 ? 2 : 1};
  ONCILLA_ASSIGN(const ValueId cosine, b.Unsqueeze(waves[0], heads, "cosine"));
  ONCILLA_ASSIGN(const ValueId sine, b.Unsqueeze(waves[1], heads, "sine"));
  ONCILLA_ASSIGN(const ValueId y, AddRotation(b, x, cosine, sine, turned, interleaved));
  if (rank == 4) return One(b.Add("Identity", {}, {y}));
  return One(b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints({0, 0, -1})}));
}

Result<Values> Rotate(OnnxLowering& b, const Rotary& at) {
  ONCILLA_ASSIGN(const int64_t turned, b.Int("rotary_embedding_dim", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId x, ReadHeads(b, at, rank, turned));
  ValueId places = b.in(at.places);
  if (places != kNoValue && at.cosine != 1) {
    ONCILLA_ASSIGN(const int place_rank, b.Rank(at.places, "the list of places"));
    if (place_rank == 1) {
      ONCILLA_ASSIGN(places, PlacesFrom(b, places, x, rank == 3 ? 1 : 2));
    }
  }
  ValueId waves[2] = {b.in(at.cosine), b.in(at.sine)};
  for (int i = 0; i < 2 && places != kNoValue; ++i) {
    ONCILLA_ASSIGN(waves[i], b.Add("Gather", {}, {waves[i], places}, kWaveAt[i]));
  }
  return Turn(b, x, rank, waves, turned);
}

Result<Values> LowerRotaryEmbedding(OnnxLowering& b) { return Rotate(b, {}); }

// ONNX Runtime's CPU provider reads these attributes without using them: nothing is scaled, and all
// rows of the input are rotated. Models were tested with that behaviour.
Result<Values> LowerMicrosoftRotary(OnnxLowering& b) {
  b.Ignore("scale");
  b.Ignore("is_packed_batching");
  return Rotate(b, kMicrosoft);
}

// Whether each angle belongs to the position along time (0), height (1) or width (2).
Result<std::vector<int>> StreamsOfAngles(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> sections, b.IntList("mrope_section"));
  ONCILLA_ASSIGN(const int64_t layout, b.Int("mrope_layout", 0));
  constexpr int64_t kMost = 1 << 20;
  if (sections.size() != 3) return DataLoss("mrope_section has ", sections.size(), " numbers");
  int64_t half = 0;
  for (int64_t n : sections) {
    if (n < 0 || n > kMost) return InvalidArgument("mrope_section contains ", n);
    half += n;
  }
  if (layout != 0 && layout != 1) return InvalidArgument("mrope_layout is ", layout);
  std::vector<int> streams;
  for (int64_t i = 0; i < half; ++i) {
    int stream = 0;
    if (layout == 0) {
      stream = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    } else if (i % 3 != 0 && i < 3 * sections[static_cast<size_t>(i % 3)]) {
      stream = static_cast<int>(i % 3);
    }
    streams.push_back(stream);
  }
  return streams;
}

// Rotation by three positions [3, N, L] of each token, which have separate angles. Unlike
// RotaryEmbedding, it multiplies cosines and sines by the scale.
Result<Values> LowerMultimodalRotary(OnnxLowering& b) {
  b.Ignore("is_packed_batching");
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 1));
  ONCILLA_ASSIGN(const std::vector<int> streams, StreamsOfAngles(b));
  ONCILLA_ASSIGN(const int64_t turned, b.Int("rotary_embedding_dim", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId x, ReadHeads(b, kMicrosoft, rank, turned));
  ONCILLA_ASSIGN(const Values places,
                 b.AddAll(SplitAttrs{.axis = 0, .parts = 3}, {b.in(1)}, "places"));
  const int64_t half = std::ssize(streams);
  ValueId waves[2] = {b.in(2), b.in(3)};
  for (int i = 0; i < 2; ++i) {
    const ValueId table = waves[i];
    const PartialShape shape = b.fact(table).shape;
    if (shape.ranked() && shape.rank() == 2 && shape[1].known() && shape[1].size != half) {
      return InvalidArgument("mrope_section is of ", half, " angles, the cache of ", shape[1].size);
    }
    for (int stream = 0; stream < 3; ++stream) {
      const std::string name = StrCat(kWaveAt[i], stream);
      const auto at = static_cast<size_t>(stream);
      ONCILLA_ASSIGN(ValueId own, b.Add("Squeeze", {}, {places[at], b.Ints({0})}, name + "_place"));
      ONCILLA_ASSIGN(own, b.Add("Gather", {}, {table, own}, name));
      if (stream == 0) {
        waves[i] = own;
        continue;
      }
      std::vector<uint8_t> mine;
      for (int other : streams) mine.push_back(other == stream);
      const ValueId mask = b.Constant(Tensor::Of<uint8_t>(DType::kBool, {half}, mine));
      ONCILLA_ASSIGN(waves[i], b.Add("Where", {}, {mask, own, waves[i]}, name + "_chosen"));
    }
    if (scale != 1) {
      const DType wide = WideOf(b.fact(table).dtype);
      ONCILLA_ASSIGN(waves[i], b.Cast(waves[i], wide, StrCat(kWaveAt[i], "_wide")));
      ONCILLA_ASSIGN(const ValueId factor, b.Scalar(wide, double{scale}));
      ONCILLA_ASSIGN(waves[i], b.Add("Mul", {}, {waves[i], factor}, StrCat(kWaveAt[i], "_scaled")));
    }
  }
  return Turn(b, x, rank, waves, turned);
}

constexpr OnnxOpRow kRows[] = {
    {"RotaryEmbedding", 23, kNewestOnnxOpset, 3, "", LowerRotaryEmbedding},
};
constexpr OnnxOpRow kMicrosoftRows[] = {
    {"MRotaryEmbedding", 1, kNewestOnnxMicrosoft, 4, "", LowerMultimodalRotary},
    {"RotaryEmbedding", 1, kNewestOnnxMicrosoft, 4, "", LowerMicrosoftRotary},
};

}  // namespace

std::span<const OnnxOpRow> OnnxRotaryRows() { return kRows; }
std::span<const OnnxOpRow> MicrosoftRotaryRows() { return kMicrosoftRows; }

}  // namespace oncilla
