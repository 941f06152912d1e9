// SVDF: a layer of rank-one filters, each a vector over features and one over time. It keeps the
// last steps of its features from run to run.
#include "engine/import/tflite/ops/quantize_hybrid.h"

namespace oncilla {
namespace {

// Inputs: x[N, in], feature weights [F, in], time weights [F, M], bias [units] (optional), state
// [N, F * M].
struct Sizes {
  int64_t filters = 0, memory = 0, units = 0, rank = 0;
};

Result<Sizes> SizesOf(const TfliteLowering& b, int64_t rank) {
  const PartialShape features = b.in_fact(1).shape, time = b.in_fact(2).shape;
  if (!features.known() || features.rank() != 2 || !time.known() || time.rank() != 2) {
    return Unsupported("weights of the shapes ", features, " and ", time);
  }
  Sizes sizes = {features[0].size, time[1].size, 0, rank};
  if (rank < 1 || sizes.filters % rank != 0 || time[0].size != sizes.filters || sizes.memory < 1) {
    return InvalidArgument("weights ", features, " and ", time, " of rank ", rank);
  }
  sizes.units = sizes.filters / rank;
  return sizes;
}

// The state without its oldest step, and with `features` [N, F] as its newest step: [N, F, M].
Result<ValueId> Remember(TfliteLowering& b, const Sizes& s, ValueId features) {
  if (b.has(4)) return Unsupported("a state that is fed");
  ONCILLA_ASSIGN(const ValueId flat, b.ReadState(4));
  const auto as = [&](ValueId v, std::vector<int64_t> shape, std::string_view role) {
    return b.Add("Reshape", {}, {v, b.Ints(std::move(shape))}, role);
  };
  ONCILLA_ASSIGN(const ValueId old, as(flat, {-1, s.filters, s.memory}, "old"));
  ONCILLA_ASSIGN(const ValueId kept,
                 b.Add("Slice", {}, {old, b.Ints({1}), b.Ints({s.memory}), b.Ints({2})}, "kept"));
  ONCILLA_ASSIGN(const ValueId newest, as(features, {-1, s.filters, 1}, "newest"));
  ONCILLA_ASSIGN(const ValueId all, b.Add(ConcatAttrs{.axis = 2}, {kept, newest}, "memory"));
  ONCILLA_ASSIGN(const ValueId next, as(all, {-1, s.filters * s.memory}, "next"));
  ONCILLA_TRY(b.AssignState(4, next));
  return all;
}

// Multiplies each filter's steps by its time weights, and adds up the filters of each unit, plus
// the bias.
Result<ValueId> AddUp(TfliteLowering& b, const Sizes& s, ValueId memory, ValueId time,
                      std::string_view role) {
  const bool biased = b.has(3);
  ONCILLA_ASSIGN(const ValueId products, b.Add("Mul", {}, {memory, time}, "products"));
  ONCILLA_ASSIGN(const ValueId filters, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                              {products, b.Ints({-1})}, "filters"));
  ONCILLA_ASSIGN(const ValueId ranks,
                 b.Add("Reshape", {}, {filters, b.Ints({-1, s.units, s.rank})}, "ranks"));
  ONCILLA_ASSIGN(const ValueId sums, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                           {ranks, b.Ints({-1})}, biased ? "units" : role));
  return biased ? b.Add("Add", {}, {sums, b.in(3)}, role) : Result<ValueId>(sums);
}

// SVDF in integers: the state has 16 bits, and each tensor has a single scale.
Result<Values> AddIntegerSvdf(TfliteLowering& b, const Sizes& s) {
  const TfliteTensor &x = b.tensor(0), &features = b.tensor(1), &time = b.tensor(2),
                     &state = b.tensor(4), &y = b.output_tensor();
  const bool known = b.dtype(0) == DType::kI8 && b.dtype(1) == DType::kI8 &&
                     b.dtype(2) == DType::kI16 && b.output_type() == DType::kI8 &&
                     DTypeFromTflite(state.type) == DType::kI16 &&
                     (!b.has(3) || b.dtype(3) == DType::kI32);
  if (!known) return Unsupported("of quantised tensors (", b.QuantisedTypes(), ")");
  for (const TfliteTensor* tensor : {&x, &features, &time, &state, &y}) {
    ONCILLA_TRY(CheckTfliteScales(*tensor));
    if (tensor->quantization.scale.size() != 1) return Unsupported("with a scale for each channel");
  }
  for (const TfliteTensor* tensor : {&features, &time, &state}) {
    if (TfliteZeroOf(*tensor) != 0) return Unsupported("a zero point of ", TfliteZeroOf(*tensor));
  }
  const auto scale = [](const TfliteTensor& tensor) { return tensor.quantization.scale[0]; };
  ONCILLA_ASSIGN(const ValueId zero, TfliteZero(b, 0));
  ONCILLA_ASSIGN(const ValueId sums, b.Add(MatMulIntegerAttrs{.transpose_b = true},
                                           {b.in(0), b.in(1), zero}, "features"));
  const float to_state = scale(x) * scale(features) / scale(state);
  ONCILLA_ASSIGN(const ValueId narrow,
                 TfliteFixed(b, sums, {double{to_state}}, {}, DType::kI16, 0, "stored"));
  ONCILLA_ASSIGN(const ValueId memory, Remember(b, s, narrow));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(memory, DType::kI32, "wide"));
  ONCILLA_ASSIGN(const ValueId weights, b.Cast(b.in(2), DType::kI32, "weights"));
  ONCILLA_ASSIGN(const ValueId units, AddUp(b, s, wide, weights, "sums"));
  const float to_y = scale(state) * scale(time) / scale(y);
  return One(TfliteFixed(b, units, {double{to_y}}, {}, DType::kI8, TfliteZeroOf(y), ""));
}

Result<Values> LowerSvdf(TfliteLowering& b) {
  ONCILLA_ASSIGN(const int64_t rank, b.Int(0));
  ONCILLA_ASSIGN(const int64_t activation, b.Activation(1));
  ONCILLA_ASSIGN(const bool asymmetric, b.Flag(2));
  ONCILLA_ASSIGN(const Sizes s, SizesOf(b, rank));
  if (b.dtype(0) == DType::kI8) {
    if (activation != 1) return Unsupported("of bytes with the activation ", activation);
    return AddIntegerSvdf(b, s);
  }
  const bool hybrid = IsTfliteHybrid(b, 0, 1);
  if (b.dtype(0) != DType::kF32 || (!hybrid && b.dtype(1) != DType::kF32)) {
    return Unsupported("of ", b.dtype(0), " with weights of ", b.dtype(1));
  }
  ValueId features = kNoValue, time = b.in(2);
  if (hybrid) {
    for (size_t i : {1, 2}) {
      ONCILLA_TRY(CheckTfliteHybrid(b, i));
      if (b.dtype(i) != DType::kI8) return Unsupported("weights of ", b.dtype(i));
      if (b.tensor(i).quantization.scale.size() != 1) return Unsupported("with many scales");
    }
    ONCILLA_ASSIGN(time, TfliteDequantised(b, 2, DType::kF32, "weights"));
    ONCILLA_ASSIGN(const Values real, TfliteHybridProduct(b, b.in(0), {.transpose_b = true},
                                                          kNoValue, asymmetric, 0, "features"));
    features = real[0];
  } else {
    ONCILLA_ASSIGN(features,
                   b.Add(MatMulAttrs{.transpose_b = true}, {b.in(0), b.in(1)}, "features"));
  }
  ONCILLA_ASSIGN(const ValueId memory, Remember(b, s, features));
  ONCILLA_ASSIGN(const ValueId y, AddUp(b, s, memory, time, b.Inner(activation)));
  return One(b.Activated(y, activation));
}

constexpr TfliteOpRow kRows[] = {
    {"SVDF", 3, TfliteOptions::kSvdf, "", LowerSvdf, TfliteQuantised::kTaken},
};

}  // namespace

std::span<const TfliteOpRow> TfliteSvdfRows() { return kRows; }

}  // namespace oncilla
