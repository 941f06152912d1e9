// ONNX's random ops, and Dropout, which does nothing outside training. The standard does not
// specify the generator. With a seed, the first run gives the results of ONNX's reference
// implementation, which draws from NumPy's RandomState. Without a seed, or with one that NumPy
// refuses, numbers come from the engine's own generator. Both generators continue from run to run.
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// The seed attribute for both generators. NumPy's is absent if NumPy would refuse the attribute; a
// float is truncated for it.
struct Seed {
  std::optional<int64_t> numpy;
  int64_t own = 0;  // zero stands for none
};

std::optional<int64_t> OfNumPy(auto seed) {
  if (!(seed > -1 && seed <= std::numeric_limits<uint32_t>::max())) return std::nullopt;
  return static_cast<int64_t>(seed);
}

// The seed for the engine's own generator is made odd, so that it is never zero (which means none).
Result<Seed> FloatSeed(const OnnxLowering& b) {
  if (!b.HasAttr("seed")) return Seed();
  ONCILLA_ASSIGN(const float seed, b.Float("seed", 0));
  return Seed{OfNumPy(double{seed}), static_cast<int64_t>(std::bit_cast<uint32_t>(seed)) * 2 + 1};
}
Result<Seed> IntSeed(const OnnxLowering& b) {
  if (!b.HasAttr("seed")) return Seed();
  ONCILLA_ASSIGN(const int64_t seed, b.Int("seed", 0));
  return Seed{OfNumPy(seed), static_cast<int64_t>(static_cast<uint64_t>(seed) * 2 + 1)};
}

// Random numbers of type `to`. NumPy's numbers are drawn as f64.
Result<ValueId> Numbers(OnnxLowering& b, const Seed& seed, std::string distribution, DType to,
                        ValueId shape) {
  if (!seed.numpy) {
    RandomAttrs attrs;
    attrs.distribution = std::move(distribution);
    attrs.to = to;
    attrs.seed = seed.own;
    return b.Add("RandomStream", attrs, {shape}, "numbers");
  }
  const MersenneAttrs attrs = {.distribution = std::move(distribution), .seed = *seed.numpy};
  ONCILLA_ASSIGN(const ValueId x, b.Add(attrs, {shape}, "numbers"));
  return b.Cast(x, to, "typed_numbers");
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
  ONCILLA_ASSIGN(const Seed seed, FloatSeed(b));
  ONCILLA_ASSIGN(const ValueId x, Numbers(b, seed, normal ? "normal" : "uniform", to, shape));
  ONCILLA_ASSIGN(const float first, b.Float(normal ? "mean" : "low", 0));
  ONCILLA_ASSIGN(const float second, b.Float(normal ? "scale" : "high", 1));
  const double scale = normal ? double{second} : double{second} - double{first};
  return One(Scaled(b, x, scale, double{first}));
}

// One with the probability that the input gives, otherwise zero.
Result<Values> LowerBernoulli(OnnxLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", b.dtype()));
  ONCILLA_ASSIGN(const Seed seed, FloatSeed(b));
  ValueId hit = kNoValue;
  if (seed.numpy) {
    ONCILLA_ASSIGN(hit, b.Add(BernoulliAttrs{*seed.numpy}, {b.in(0)}, "hit"));
  } else {
    ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
    ONCILLA_ASSIGN(const ValueId x, Numbers(b, seed, "uniform", DType::kF32, shape));
    ONCILLA_ASSIGN(const ValueId chance, b.Cast(b.in(0), DType::kF32, "chance"));
    ONCILLA_ASSIGN(hit, b.Add("Less", {}, {x, chance}, "hit"));
  }
  if (to == DType::kBool) return One(b.Add("Identity", {}, {hit}));
  return One(b.Cast(hit, to, ""));
}

Result<Values> LowerMultinomial(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t count, b.Int("sample_size", 1));
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", DType::kI32));
  ONCILLA_ASSIGN(const Seed seed, FloatSeed(b));
  const SampleAttrs attrs = {.to = to, .seed = seed.own};  // the reference has no Multinomial
  return One(b.Add("SampleStream", attrs, {b.in(0), b.Constant(Tensor::ScalarInt64(count))}));
}

// Training mode: drops elements at random, to zero, and scales the others up. The ratio, and
// whether the op is in training mode at all, may be computed. NumPy's numbers are compared as f64,
// with all their 53 bits.
Result<Values> DropAtRandom(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Seed seed, IntSeed(b));
  ONCILLA_ASSIGN(ValueId ratio, b.Scalar(DType::kF32, 0.5));
  if (b.has(1)) ratio = b.in(1);
  ONCILLA_ASSIGN(const ValueId trains, b.Cast(b.in(2), DType::kBool, "trains"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(b.fact(ratio).dtype, 0));
  ONCILLA_ASSIGN(ratio, b.Add("Where", {}, {trains, ratio, none}, "used_ratio"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  const DType drawn = seed.numpy ? DType::kF64 : DType::kF32;
  ONCILLA_ASSIGN(const ValueId chance, Numbers(b, seed, "uniform", drawn, shape));
  ONCILLA_ASSIGN(const ValueId least, b.Cast(ratio, drawn, "least"));
  ONCILLA_ASSIGN(const ValueId mask, b.Add("GreaterEqual", {}, {chance, least}, "mask"));
  const DType compute = b.fact(ratio).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  ONCILLA_ASSIGN(ratio, b.Cast(ratio, compute, "ratio"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(compute, 1));
  ONCILLA_ASSIGN(const ValueId rest, b.Add("Sub", {}, {one, ratio}, "rest"));
  ONCILLA_ASSIGN(ValueId factor, b.Add("Div", {}, {one, rest}, "factor"));
  ONCILLA_ASSIGN(factor, b.Cast(factor, b.dtype(), "typed_factor"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {b.in(0), factor}, "scaled"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Where", {}, {mask, scaled, zero}));
  return Values{y, mask};
}

Result<Values> LowerDropout(OnnxLowering& b) {
  b.Ignore("ratio");
  if (b.version() < 7) {
    b.Ignore("is_test");  // a model that is run is not trained, whatever it was saved as
  } else if (b.version() >= 12 && b.has(2)) {
    if (!b.in_fact(2).has_value()) return DropAtRandom(b);
    ONCILLA_ASSIGN(const auto flag, ToInt64s(b.in_fact(2).value));
    if (flag.size() == 1 && flag[0] != 0) return DropAtRandom(b);
  }
  b.Ignore("seed");
  ONCILLA_ASSIGN(const ValueId y, b.Add("Identity", {}, {b.in(0)}));
  if (!b.wants(1)) return Values{y, kNoValue};
  // The mask of kept elements: bool from opset 10 on, before that of the data's type.
  ONCILLA_ASSIGN(const ValueId kept, b.Scalar(b.version() < 10 ? b.dtype() : DType::kBool, 1));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  ONCILLA_ASSIGN(const ValueId mask, b.Add("Fill", {}, {shape, kept}, "mask"));
  return Values{y, mask};
}

constexpr OnnxOpRow kRows[] = {
    {"Bernoulli", 15, kNewestOnnxOpset, 1, "", LowerBernoulli},
    {"Dropout", 1, kNewestOnnxOpset, 1, "", LowerDropout},
    {"Multinomial", 7, kNewestOnnxOpset, 1, "", LowerMultinomial},
    {"RandomNormal", 1, kNewestOnnxOpset, 0, "", LowerRandom},
    {"RandomNormalLike", 1, kNewestOnnxOpset, 1, "", LowerRandom},
    {"RandomUniform", 1, kNewestOnnxOpset, 0, "", LowerRandom},
    {"RandomUniformLike", 1, kNewestOnnxOpset, 1, "", LowerRandom},
};

}  // namespace

std::span<const OnnxOpRow> OnnxRandomRows() { return kRows; }

}  // namespace oncilla
