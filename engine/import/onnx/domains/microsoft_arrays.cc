// Ops of com.microsoft on arrays that fit none of ONNX's families: windows of an axis, crops of
// images, word embeddings from characters, least-cost paths, sparse products, hashes.
#include <limits>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// 0, step, 2 * step, .. below `limit`, which has rank 0.
Result<ValueId> Steps(OnnxLowering& b, ValueId limit, int64_t step, const std::string& name) {
  const ValueId zero = b.Constant(Tensor::ScalarInt64(0));
  return b.Add("Range", {}, {zero, limit, b.Constant(Tensor::ScalarInt64(step))}, name);
}

// Windows along an axis, `step` apart; the elements of a window become a last axis of length
// `size`.
Result<Values> LowerUnfoldTensor(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t size, b.NeedInt("size"));
  ONCILLA_ASSIGN(const int64_t step, b.Int("step", 1));
  ONCILLA_ASSIGN(int64_t axis, b.Int("dim", -1));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank >= kMaxRank) return Unsupported("of a tensor of rank ", rank);
  ONCILLA_ASSIGN(axis, NormalizeAxis(axis, rank));
  const Dim length =
      b.in_fact(0).shape.ranked() ? b.in_fact(0).shape[static_cast<int>(axis)] : Dim();
  if (size < 1 || step < 1 || (length.known() && length.size < size)) {
    return InvalidArgument("windows of ", size, " elements, ", step, " apart, of an axis of ",
                           length);
  }
  const int at = static_cast<int>(axis);
  ONCILLA_ASSIGN(ValueId limit, b.Sizes(b.in(0), at, at + 1, "length"));
  ONCILLA_ASSIGN(limit, b.Add("Squeeze", {}, {limit, b.Ints({0})}, "length_number"));
  ONCILLA_ASSIGN(
      limit, b.Add("Sub", {}, {limit, b.Constant(Tensor::ScalarInt64(size - 1))}, "windows_end"));
  ONCILLA_ASSIGN(ValueId places, Steps(b, limit, step, "windows"));
  ONCILLA_ASSIGN(places, b.Unsqueeze(places, {1}, "window_starts"));
  ONCILLA_ASSIGN(const ValueId within,
                 Steps(b, b.Constant(Tensor::ScalarInt64(size)), 1, "within_window"));
  ONCILLA_ASSIGN(places, b.Add("Add", {}, {places, within}, "places"));
  const bool last = at == rank - 1;
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add(GatherAttrs{.axis = axis}, {b.in(0), places}, last ? "" : "unfolded"));
  if (last) return Values{y};
  std::vector<int64_t> perm;
  for (int64_t i = 0; i <= rank; ++i) {
    if (i != axis + 1) perm.push_back(i);
  }
  perm.push_back(axis + 1);
  return One(b.Transpose(y, std::move(perm), ""));
}

Result<Values> LowerUnique(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Values y,
                 b.AddAll(UniqueAttrs{.sorted = false, .equal_nans = false}, {b.in(0)}));
  return Values{y[0], y[2], y[3]};
}

// TensorFlow's CropAndResize with channels first.
Result<Values> LowerCropAndResize(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", "bilinear"));
  ONCILLA_ASSIGN(const float outside, b.Float("extrapolation_value", 0));
  if (mode != "bilinear" && mode != "nearest") return InvalidArgument("mode is '", mode, "'");
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), 4));
  const CropAndResizeAttrs attrs = {.nearest = mode == "nearest", .outside = double{outside}};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, b.in(1), b.in(2), b.in(3)}, "inner"));
  return One(b.ChannelsFirst(y, 4));
}

// The embedding of each word [L, characters]: a convolution over the embeddings of its characters,
// Tanh, and the maximum over the windows within the word. The length of a word is its number of
// characters other than 0, but at least one window. Words that begin with 0 give zeros; ONNX
// Runtime leaves their embeddings undefined.
Result<Values> LowerWordConvEmbedding(OnnxLowering& b) {
  for (const char* name : {"embedding_size", "conv_window_size", "char_embedding_size"}) {
    b.Ignore(name);  // repeat sizes of the weights
  }
  const PartialShape shape = b.in_fact(1).shape;
  ONCILLA_ASSIGN(const int rank, b.Rank(1, "the filter"));
  if (rank != 4 || !shape.ranked() || !shape[2].known() || shape[2].size < 1) {
    return Unsupported("with a filter of the shape ", shape);
  }
  const int64_t window = shape[2].size;
  const ValueId zero = b.Constant(Tensor::ScalarInt64(0)), one = b.Constant(Tensor::ScalarInt64(1));
  // The filter from [M, 1, window, size] to [window, size, M].
  ONCILLA_ASSIGN(ValueId filter, b.Add("Squeeze", {}, {b.in(1), b.Ints({1})}, "filter_in"));
  ONCILLA_ASSIGN(filter, b.Transpose(filter, {1, 2, 0}, "filter"));
  ONCILLA_ASSIGN(const ValueId x,
                 b.Add(GatherAttrs{.negative_indices = false}, {b.in(3), b.in(0)}, "characters"));
  ONCILLA_ASSIGN(ValueId y, b.Add(ConvAttrs{}, {x, filter, b.in(2)}, "windows"));
  ONCILLA_ASSIGN(y, b.Add("Tanh", {}, {y}, "curve"));
  // The number of windows within each word.
  ONCILLA_ASSIGN(const ValueId letters, b.Cast(b.in(0), DType::kI64, "letters"));
  ONCILLA_ASSIGN(ValueId full, b.Add("Greater", {}, {letters, zero}, "full"));
  ONCILLA_ASSIGN(full, b.Cast(full, DType::kI64, "full_number"));
  ONCILLA_ASSIGN(ValueId count, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true},
                                      {full, b.Ints({1})}, "lengths"));
  ONCILLA_ASSIGN(count, b.Add("Sub", {}, {count, b.Constant(Tensor::ScalarInt64(window - 1))},
                              "windows_of_words"));
  ONCILLA_ASSIGN(count, b.Add("Max", {}, {count, one}, "windows_at_least"));
  ONCILLA_ASSIGN(ValueId places, b.Sizes(y, 1, 2, "places_size"));
  ONCILLA_ASSIGN(places, b.Add("Squeeze", {}, {places, b.Ints({0})}, "places_number"));
  ONCILLA_ASSIGN(places, Steps(b, places, 1, "places"));
  ONCILLA_ASSIGN(ValueId within, b.Add("Less", {}, {places, count}, "within"));
  ONCILLA_ASSIGN(within, b.Unsqueeze(within, {2}, "within_word"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, -1e12));
  ONCILLA_ASSIGN(y, b.Add("Where", {}, {within, y, least}, "windows_within"));
  ONCILLA_ASSIGN(y, b.Add("ReduceMax", ReduceAttrs{.keep_dims = false}, {y, b.Ints({1})}, "most"));
  ONCILLA_ASSIGN(
      const ValueId first,
      b.Add("Slice", {}, {letters, b.Ints({0}), b.Ints({1}), b.Ints({1})}, "first_letters"));
  ONCILLA_ASSIGN(const ValueId word, b.Add("Greater", {}, {first, zero}, "is_word"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kF32, 0));
  return One(b.Add("Where", {}, {word, y, none}));
}

Result<Values> LowerMurmurHash(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t seed, b.Int("seed", 0));
  ONCILLA_ASSIGN(const bool positive, b.Flag("positive", true));
  constexpr int64_t kValues = int64_t{1} << 32;
  if (seed < -kValues / 2 || seed >= kValues) return InvalidArgument("seed is ", seed);
  const HashStringsAttrs attrs = {
      .hash = "murmur3", .buckets = kValues, .key = {seed & (kValues - 1)}};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0)}, "wide"));
  return One(b.Cast(y, positive ? DType::kU32 : DType::kI32, ""));
}

// The path of the least cost from one corner of a matrix [M, N] or [1, M, N] to the other.
Result<Values> LowerDynamicTimeWarping(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank != 2 && rank != 3) return InvalidArgument("costs of rank ", rank);
  if (rank == 2) return One(b.Add("WarpPath", {}, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId costs, b.Add("Squeeze", {}, {b.in(0), b.Ints({0})}, "costs"));
  return One(b.Add("WarpPath", {}, {costs}));
}

// The sparse operand is read as a dense tensor.
Result<Values> LowerSparseToDenseMatMul(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 1));
  ONCILLA_ASSIGN(const bool transpose_a, b.Flag("transA", false));
  ONCILLA_ASSIGN(const bool transpose_b, b.Flag("transB", false));
  const MatMulAttrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {b.in(0), b.in(1)}, alpha == 1 ? "" : "product"));
  if (alpha == 1) return Values{y};
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(b.dtype(1), double{alpha}));
  return One(b.Add("Mul", {}, {y, factor}));
}

constexpr OnnxOpRow kRows[] = {
    {"CropAndResize", 1, kNewestOnnxMicrosoft, 4, "", LowerCropAndResize},
    {"DynamicTimeWarping", 1, kNewestOnnxMicrosoft, 1, "", LowerDynamicTimeWarping},
    {"MurmurHash3", 1, kNewestOnnxMicrosoft, 1, "", LowerMurmurHash},
    {"SampleOp", 1, kNewestOnnxMicrosoft, 1, "Identity"},
    {"SparseToDenseMatMul", 1, kNewestOnnxMicrosoft, 2, "", LowerSparseToDenseMatMul},
    {"UnfoldTensor", 1, kNewestOnnxMicrosoft, 1, "", LowerUnfoldTensor},
    {"Unique", 1, kNewestOnnxMicrosoft, 1, "", LowerUnique},
    {"WordConvEmbedding", 1, kNewestOnnxMicrosoft, 4, "", LowerWordConvEmbedding},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftArrayRows() { return kRows; }

}  // namespace oncilla
