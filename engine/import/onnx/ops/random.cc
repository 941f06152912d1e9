// ONNX's random ops. The standard leaves the generator open: numbers come from ours, continue from
// run to run, and start equally with the same seed.
#include <bit>
#include <cmath>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// The seed is a float. Zero means "no seed" in the canonical op, so the float's bits are used, made
// odd.
Result<RandomAttrs> Stream(OnnxLowering& b, std::string distribution, DType to) {
  RandomAttrs attrs;
  attrs.distribution = std::move(distribution);
  attrs.to = to;
  if (b.HasAttr("seed")) {
    ONCILLA_ASSIGN(const float seed, b.Float("seed", 0));
    attrs.seed = static_cast<int64_t>(std::bit_cast<uint32_t>(seed)) * 2 + 1;
  }
  return attrs;
}

// x * scale + offset.
Result<ValueId> Scaled(OnnxLowering& b, ValueId x, double scale, double offset) {
  const DType dtype = b.fact(x).dtype;
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(dtype, scale));
  ONCILLA_ASSIGN(const ValueId start, b.Scalar(dtype, offset));
  ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, factor}, "scaled"));
  return b.Add("Add", {}, {x, start});
}

Result<Values> LowerRandom(OnnxLowering& b) {
  const bool like = b.op().ends_with("Like"), normal = b.op().starts_with("RandomNormal");
  const DType usual = like ? b.dtype() : DType::kF32;
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", usual));
  if (!IsFloat(to)) return InvalidArgument("random numbers of ", to);
  ValueId shape = kNoValue;
  if (like) {
    ONCILLA_ASSIGN(shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  } else {
    ONCILLA_ASSIGN(std::vector<int64_t> sizes, b.IntList("shape"));
    if (!b.HasAttr("shape")) return DataLoss("attribute 'shape' is missing");
    shape = b.Ints(std::move(sizes));
  }
  ONCILLA_ASSIGN(const RandomAttrs attrs, Stream(b, normal ? "normal" : "uniform", to));
  ONCILLA_ASSIGN(const ValueId x, b.Add("RandomStream", attrs, {shape}, "numbers"));
  ONCILLA_ASSIGN(const float first, b.Float(normal ? "mean" : "low", 0));
  ONCILLA_ASSIGN(const float second, b.Float(normal ? "scale" : "high", 1));
  const double scale = normal ? double{second} : double{second} - double{first};
  return One(Scaled(b, x, scale, double{first}));
}

// One with the probability that the input states, else zero.
Result<Values> LowerBernoulli(OnnxLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", b.dtype()));
  ONCILLA_ASSIGN(const RandomAttrs attrs, Stream(b, "uniform", DType::kF32));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  ONCILLA_ASSIGN(const ValueId x, b.Add("RandomStream", attrs, {shape}, "numbers"));
  ONCILLA_ASSIGN(const ValueId chance, b.Cast(b.in(0), DType::kF32, "chance"));
  ONCILLA_ASSIGN(const ValueId hit, b.Add("Less", {}, {x, chance}, "hit"));
  if (to == DType::kBool) return One(b.Add("Identity", {}, {hit}));
  return One(b.Cast(hit, to, ""));
}

Result<Values> LowerMultinomial(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t count, b.Int("sample_size", 1));
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", DType::kI32));
  ONCILLA_ASSIGN(const RandomAttrs stream, Stream(b, "uniform", DType::kF32));
  const SampleAttrs attrs = {.to = to, .seed = stream.seed};
  return One(b.Add("SampleStream", attrs, {b.in(0), b.Constant(Tensor::ScalarInt64(count))}));
}

constexpr OnnxOpRow kRows[] = {
    {"Bernoulli", 15, kNewestOnnxOpset, 1, "", LowerBernoulli},
    {"Multinomial", 7, kNewestOnnxOpset, 1, "", LowerMultinomial},
    {"RandomNormal", 1, kNewestOnnxOpset, 0, "", LowerRandom},
    {"RandomNormalLike", 1, kNewestOnnxOpset, 1, "", LowerRandom},
    {"RandomUniform", 1, kNewestOnnxOpset, 0, "", LowerRandom},
    {"RandomUniformLike", 1, kNewestOnnxOpset, 1, "", LowerRandom},
};

}  // namespace

std::span<const OnnxOpRow> OnnxRandomRows() { return kRows; }

}  // namespace oncilla
