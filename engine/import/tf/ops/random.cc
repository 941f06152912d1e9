// TensorFlow's random numbers, with seeds of the op or stateless. Both use the Philox generator.
#include "engine/import/tf/lowering.h"
#include "engine/ops/math/variates.h"

namespace oncilla {
namespace {

// The distribution that an op's name ends with.
std::string Distribution(std::string_view op) {
  const auto has = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
  if (has("FullInt")) return "full_int";
  if (has("UniformInt")) return "uniform_int";
  if (has("Uniform")) return "uniform";
  return has("Truncated") ? "truncated_normal" : "normal";
}

// The op's seeds; if both are zero, TensorFlow chooses seeds itself, so any numbers will do.
Result<ShuffleAttrs> Seeds(const TfLowering& b) {
  ShuffleAttrs seeds;
  ONCILLA_ASSIGN(seeds.seed, b.attrs().Int("seed"));
  ONCILLA_ASSIGN(seeds.seed2, b.attrs().Int("seed2"));
  return seeds;
}
bool AnyStart(const ShuffleAttrs& seeds) { return seeds.seed == 0 && seeds.seed2 == 0; }

// The generators of TensorFlow's seeded ops reserve a number of steps for each output that they may
// need.
constexpr int64_t kReserved = 256;

// The key and counter of the generator with the op's seeds. Its state persists between runs: a
// variable counts the steps used so far, to which this op adds `steps` (i64[]).
Result<Values> TakeSteps(TfLowering& b, const ShuffleAttrs& seeds, ValueId steps) {
  const auto number = [](int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    return Tensor::Of<uint64_t>(DType::kU64, {1}, {&bits, 1});
  };
  const std::string variable = b.name() + "/stream";
  ONCILLA_ASSIGN(const ValueId used, b.ReadOwnVariable(variable, number(0), "used"));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(steps, DType::kU64, "wide"));
  ONCILLA_ASSIGN(const ValueId next, b.Add("Add", {}, {used, wide}, "next"));
  ONCILLA_TRY(b.AssignVariable(variable, next, "keep"));
  ONCILLA_ASSIGN(const ValueId counter,
                 b.Add(ConcatAttrs{.axis = 0}, {used, b.Constant(number(seeds.seed2))}, "counter"));
  return Values{b.Constant(number(seeds.seed)), counter};
}

Result<ValueId> Times(TfLowering& b, ValueId x, int64_t factor, std::string_view role) {
  ONCILLA_ASSIGN(const ValueId by, b.Scalar(DType::kI64, static_cast<double>(factor)));
  return b.Add("Mul", {}, {x, by}, role);
}

Result<Values> LowerStream(TfLowering& b) {
  ONCILLA_ASSIGN(const ShuffleAttrs seeds, Seeds(b));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type(b.op() == "RandomUniformInt" ? "Tout" : "dtype"));
  RandomAttrs attrs = {.distribution = Distribution(b.op()), .to = to};
  if (AnyStart(seeds)) {
    attrs.seed = seeds.seed;
    attrs.seed2 = seeds.seed2;
    return One(b.Add("RandomStream", attrs, b.all_inputs()));
  }
  ONCILLA_ASSIGN(const ValueId sizes, b.Cast(b.in(0), DType::kI64, "sizes"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceProd", {}, {sizes}, "count"));
  ONCILLA_ASSIGN(const ValueId steps, Times(b, count, kReserved, "steps"));
  ONCILLA_ASSIGN(Values inputs, TakeSteps(b, seeds, steps));
  inputs.insert(inputs.begin(), b.in(0));
  inputs.insert(inputs.end(), b.all_inputs().begin() + 1, b.all_inputs().end());
  return One(b.Add("RandomNumbers", attrs, std::move(inputs)));
}

// A step of the generator yields four numbers, and each row but the last takes one number.
Result<Values> LowerShuffle(TfLowering& b) {
  ONCILLA_ASSIGN(const ShuffleAttrs seeds, Seeds(b));
  if (b.in_fact(0).shape.ranked() && b.in_fact(0).shape.rank() == 0) return Values{b.in(0)};
  if (AnyStart(seeds)) return One(b.Add(seeds, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId size, b.Add(ShapeAttrs{.start = 0, .end = 1}, {b.in(0)}, "size"));
  ONCILLA_ASSIGN(const ValueId two, b.Scalar(DType::kI64, 2));
  ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kI64, 4));
  ONCILLA_ASSIGN(const ValueId more, b.Add("Add", {}, {size, two}, "more"));
  ONCILLA_ASSIGN(const ValueId steps, b.Add("FloorDiv", {}, {more, four}, "steps"));
  ONCILLA_ASSIGN(Values inputs, TakeSteps(b, seeds, steps));
  inputs.insert(inputs.begin(), b.in(0));
  return One(b.Add("ShuffleRows", {}, std::move(inputs)));
}

Result<Values> LowerMultinomial(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("output_dtype"));
  if (b.op() == "Multinomial") {
    ONCILLA_ASSIGN(const ShuffleAttrs seeds, Seeds(b));
    if (!AnyStart(seeds)) {
      // Two numbers per sample; each row takes a multiple of four.
      ONCILLA_ASSIGN(const ValueId rows,
                     b.Add(ShapeAttrs{.start = 0, .end = 1}, {b.in(0)}, "rows"));
      ONCILLA_ASSIGN(const ValueId count, b.Cast(b.in(1), DType::kI64, "count"));
      ONCILLA_ASSIGN(const ValueId three, b.Scalar(DType::kI64, 3));
      ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kI64, 4));
      ONCILLA_ASSIGN(const ValueId more, b.Add("Add", {}, {count, three}, "more"));
      ONCILLA_ASSIGN(const ValueId fours, b.Add("FloorDiv", {}, {more, four}, "fours"));
      ONCILLA_ASSIGN(const ValueId samples, b.Add("Mul", {}, {rows, fours}, "samples"));
      ONCILLA_ASSIGN(const ValueId steps, Times(b, samples, 8 * kReserved, "steps"));
      ONCILLA_ASSIGN(const Values key, TakeSteps(b, seeds, steps));
      return One(b.Add("SampleClasses", SampleAttrs{.to = to}, {b.in(0), b.in(1), key[0], key[1]}));
    }
    const SampleAttrs attrs = {.to = to, .seed = seeds.seed, .seed2 = seeds.seed2};
    return One(b.Add("SampleStream", attrs, {b.in(0), b.in(1)}));
  }
  ONCILLA_ASSIGN(const Values key, b.AddAll("RandomKey", {}, {b.in(2)}, "key"));
  return One(b.Add("SampleClasses", SampleAttrs{.to = to}, {b.in(0), b.in(1), key[0], key[1]}));
}

// Inputs: shape, seed, and bounds.
Result<Values> LowerStateless(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  ONCILLA_ASSIGN(const Values key, b.AddAll("RandomKey", {}, {b.in(1)}, "key"));
  Values inputs = {b.in(0), key[0], key[1]};
  for (size_t i = 2; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return One(b.Add("RandomNumbers", RandomAttrs{.distribution = Distribution(b.op()), .to = to},
                   std::move(inputs)));
}

Status RequirePhilox(const TfLowering& b, size_t input) {
  ONCILLA_ASSIGN(const int64_t algorithm, b.KnownInt(input, "the algorithm"));
  constexpr int64_t kPhilox = 1, kAny = 3;
  if (algorithm == kPhilox || algorithm == kAny) return {};
  return Unsupported("with algorithm ", algorithm, ", which is not Philox");
}

// Inputs: shape, key, counter, algorithm, and bounds.
Result<Values> LowerStatelessV2(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  ONCILLA_TRY(RequirePhilox(b, 3));
  Values inputs = {b.in(0), b.in(1), b.in(2)};
  for (size_t i = 4; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return One(b.Add("RandomNumbers", RandomAttrs{.distribution = Distribution(b.op()), .to = to},
                   std::move(inputs)));
}

// Inputs: shape, seed, and parameters.
Result<Values> LowerDistribution(TfLowering& b) {
  SampleDistributionAttrs attrs;
  ONCILLA_ASSIGN(attrs.to, b.attrs().Type("dtype"));
  if (b.op() == "StatelessRandomPoisson") attrs.distribution = "poisson";
  if (b.op() == "StatelessRandomBinomial") attrs.distribution = "binomial";
  if (b.op() == "StatelessParameterizedTruncatedNormal") attrs.distribution = "bounded_normal";
  ONCILLA_ASSIGN(const Values key, b.AddAll("RandomKey", {}, {b.in(1)}, "key"));
  Values inputs = {b.in(0), key[0], key[1]};
  for (size_t i = 2; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return One(b.Add("SampleDistribution", attrs, std::move(inputs)));
}

// Inputs: shape, key, counter, algorithm, and alpha.
Result<Values> LowerGammaV3(TfLowering& b) {
  SampleDistributionAttrs attrs;
  ONCILLA_ASSIGN(attrs.to, b.attrs().Type("dtype"));
  ONCILLA_TRY(RequirePhilox(b, 3));
  return One(b.Add("SampleDistribution", attrs, {b.in(0), b.in(1), b.in(2), b.in(4)}));
}

Result<Values> LowerKey(TfLowering& b) {
  Values out;
  constexpr int32_t kPhilox = 1;
  const Tensor algorithm = Tensor::Of<int32_t>(DType::kI32, {}, {&kPhilox, 1});
  if (b.op() == "StatelessRandomGetAlg") return Values{b.Constant(algorithm)};
  ONCILLA_ASSIGN(out, b.AddAll("RandomKey", {}, {b.in(0)}));
  if (b.op() == "StatelessRandomGetKeyCounterAlg") out.push_back(b.Constant(algorithm));
  return out;
}

constexpr TfOpRow kRows[] = {
    {"Multinomial", 2, "", LowerMultinomial},
    {"RandomShuffle", 1, "", LowerShuffle},
    {"RandomStandardNormal", 1, "", LowerStream},
    {"RandomUniform", 1, "", LowerStream},
    {"RandomUniformInt", 3, "", LowerStream},
    {"StatelessMultinomial", 3, "", LowerMultinomial},
    {"StatelessParameterizedTruncatedNormal", 6, "", LowerDistribution},
    {"StatelessRandomBinomial", 4, "", LowerDistribution},
    {"StatelessRandomGammaV2", 3, "", LowerDistribution},
    {"StatelessRandomGammaV3", 5, "", LowerGammaV3},
    {"StatelessRandomGetAlg", 0, "", LowerKey},
    {"StatelessRandomGetKeyCounter", 1, "", LowerKey},
    {"StatelessRandomGetKeyCounterAlg", 1, "", LowerKey},
    {"StatelessRandomNormal", 2, "", LowerStateless},
    {"StatelessRandomNormalV2", 4, "", LowerStatelessV2},
    {"StatelessRandomPoisson", 3, "", LowerDistribution},
    {"StatelessRandomUniform", 2, "", LowerStateless},
    {"StatelessRandomUniformFullInt", 2, "", LowerStateless},
    {"StatelessRandomUniformFullIntV2", 4, "", LowerStatelessV2},
    {"StatelessRandomUniformInt", 4, "", LowerStateless},
    {"StatelessRandomUniformIntV2", 6, "", LowerStatelessV2},
    {"StatelessRandomUniformV2", 4, "", LowerStatelessV2},
    {"StatelessTruncatedNormal", 2, "", LowerStateless},
    {"StatelessTruncatedNormalV2", 4, "", LowerStatelessV2},
    {"TruncatedNormal", 1, "", LowerStream},
};

}  // namespace

std::span<const TfOpRow> TfRandomRows() { return kRows; }

}  // namespace oncilla
