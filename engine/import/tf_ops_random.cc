// TensorFlow's random numbers: with an op's seeds, and stateless. Both are the Philox generator.
#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

// The distribution that an op's name ends on.
std::string Distribution(std::string_view op) {
  const auto has = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
  if (has("FullInt")) return "full_int";
  if (has("UniformInt")) return "uniform_int";
  if (has("Uniform")) return "uniform";
  return has("Truncated") ? "truncated_normal" : "normal";
}

Result<AttrMap> Seeds(const TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t seed, b.attrs().Int("seed"));
  ONCILLA_ASSIGN(const int64_t seed2, b.attrs().Int("seed2"));
  return AttrMap{{"seed", seed}, {"seed2", seed2}};
}

Result<Values> LowerStream(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Seeds(b));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type(b.op() == "RandomUniformInt" ? "Tout" : "dtype"));
  attrs.emplace("distribution", Distribution(b.op()));
  attrs.emplace("to", to);
  return One(b.Add("RandomStream", std::move(attrs), b.all_inputs()));
}

Result<Values> LowerShuffle(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Seeds(b));
  if (b.in_fact(0).shape.ranked() && b.in_fact(0).shape.rank() == 0) return Values{b.in(0)};
  return One(b.Add("ShuffleStream", std::move(attrs), {b.in(0)}));
}

Result<Values> LowerMultinomial(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("output_dtype"));
  if (b.op() == "Multinomial") {
    ONCILLA_ASSIGN(AttrMap attrs, Seeds(b));
    attrs.emplace("to", to);
    return One(b.Add("SampleStream", std::move(attrs), {b.in(0), b.in(1)}));
  }
  ONCILLA_ASSIGN(const Values key, b.AddAll("RandomKey", {}, {b.in(2)}, "key"));
  return One(b.Add("SampleClasses", {{"to", to}}, {b.in(0), b.in(1), key[0], key[1]}));
}

// shape, seed, bounds..
Result<Values> LowerStateless(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  ONCILLA_ASSIGN(const Values key, b.AddAll("RandomKey", {}, {b.in(1)}, "key"));
  Values inputs = {b.in(0), key[0], key[1]};
  for (size_t i = 2; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return One(b.Add("RandomNumbers", {{"distribution", Distribution(b.op())}, {"to", to}},
                   std::move(inputs)));
}

// shape, key, counter, algorithm, bounds..
Result<Values> LowerStatelessV2(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("dtype"));
  ONCILLA_ASSIGN(const int64_t algorithm, b.KnownInt(3, "the algorithm"));
  constexpr int64_t kPhilox = 1, kAny = 3;
  if (algorithm != kPhilox && algorithm != kAny) {
    return Unsupported("with algorithm ", algorithm, ", which is not Philox");
  }
  Values inputs = {b.in(0), b.in(1), b.in(2)};
  for (size_t i = 4; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return One(b.Add("RandomNumbers", {{"distribution", Distribution(b.op())}, {"to", to}},
                   std::move(inputs)));
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
    {"StatelessRandomGetAlg", 0, "", LowerKey},
    {"StatelessRandomGetKeyCounter", 1, "", LowerKey},
    {"StatelessRandomGetKeyCounterAlg", 1, "", LowerKey},
    {"StatelessRandomNormal", 2, "", LowerStateless},
    {"StatelessRandomNormalV2", 4, "", LowerStatelessV2},
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
