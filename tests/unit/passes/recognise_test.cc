// Functions recognised in all forms that frameworks export: activations and layer norms.
#include <gmock/gmock.h>

#include <cstring>

#include "engine/base/half.h"
#include "tests/unit/support/pass_parts.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::OpsOf;
using testing::Scalar;

// Builds graphs in the order that a formula is read in.
class Formula {
 public:
  explicit Formula(Shape shape, DType dtype = DType::kF32)
      : graph_(OpSet::Builtin()), dtype_(dtype) {
    x = graph_.AddInput("x", Fact::Of(dtype, std::move(shape)));
  }
  ValueId operator()(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    const std::string name = StrCat(op, ++count_);
    return graph_.Add(name, op, std::move(attrs), std::move(inputs)).value();
  }
  ValueId number(float value) {
    if (dtype_ == DType::kF32) return graph_.AddConstant(Scalar(value));
    return graph_.AddConstant(Tensor::Of<Half>(DType::kF16, {}, std::vector{Half(value)}));
  }
  ValueId vector(std::vector<float> values, Shape shape) {
    return graph_.AddConstant(Tensor::Of<float>(DType::kF32, std::move(shape), values));
  }
  // The mean over the last axis of a rank-2 value, kept.
  ValueId mean(ValueId of) {
    const ValueId axes = graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>{-1}));
    return (*this)("ReduceMean", {of, axes}, {{"keep_dims", true}});
  }
  Graph Finish(ValueId y) {
    graph_.AddOutput("y", y);
    return graph_;
  }
  Graph& graph() { return graph_; }
  ValueId x = kNoValue;

 private:
  Graph graph_;
  const DType dtype_;
  int count_ = 0;
};

class Activations : public testing::PassTest {
 protected:
  void ExpectBecomes(Graph graph, std::string_view op) {
    const Graph after = After(graph, {{"recognise", &RecogniseActivations}});
    EXPECT_EQ(OpsOf(after), op) << Print(after);
    ExpectSameResults(graph, after, 2e-6);
  }
};

TEST_F(Activations, Silu) {
  Formula f({3, 50});
  ExpectBecomes(f.Finish(f("Mul", {f.x, f("Sigmoid", {f.x})})), "Silu");
}

TEST_F(Activations, SiluWithTheFactorsTheOtherWayRound) {
  Formula f({3, 50});
  const ValueId e = f("Add", {f("Exp", {f("Neg", {f.x})}), f.number(1)});
  ExpectBecomes(f.Finish(f("Div", {f.x, e})), "Silu");
}

TEST_F(Activations, GeluOfOnnxExporters) {
  Formula f({2, 100});
  const ValueId e = f("Erf", {f("Div", {f.x, f.number(1.41421356f)})});
  const ValueId y = f("Mul", {f("Mul", {f.x, f("Add", {e, f.number(1)})}), f.number(0.5f)});
  const Graph graph = f.Finish(y);
  ExpectBecomes(graph, "Gelu");
}

TEST_F(Activations, GeluOfTensorFlow) {
  Formula f({2, 100});
  const ValueId e = f("Erfc", {f("Mul", {f("Neg", {f.x}), f.number(0.70710678f)})});
  ExpectBecomes(f.Finish(f("Mul", {f("Mul", {f.number(0.5f), f.x}), e})), "Gelu");
}

TEST_F(Activations, GeluByTanhIsToldApart) {
  Formula f({2, 100});
  const ValueId cube = f("Pow", {f.x, f.number(3)});
  const ValueId inner = f("Add", {f.x, f("Mul", {cube, f.number(0.044715f)})});
  const ValueId t = f("Tanh", {f("Mul", {inner, f.number(0.7978845608f)})});
  const ValueId half = f("Mul", {f.x, f.number(0.5f)});
  const Graph graph = f.Finish(f("Mul", {half, f("Add", {t, f.number(1)})}));
  const Graph after = After(graph, {{"recognise", &RecogniseActivations}});
  EXPECT_THAT(Print(after), HasSubstr("Gelu(%0) {approximate=true}"));
  ExpectSameResults(graph, after, 2e-6);
}

// Networks in f16 have these functions with constants and steps in f16.
TEST_F(Activations, OfHalf) {
  const auto printed = [&](const Graph& graph) {
    return Print(After(graph, {{"recognise", &RecogniseActivations}}));
  };
  Formula erf({2, 100}, DType::kF16);
  const ValueId e = erf("Erf", {erf("Div", {erf.x, erf.number(1.41421356f)})});
  const ValueId scaled = erf("Mul", {erf.x, erf("Add", {e, erf.number(1)})});
  const std::string exact = printed(erf.Finish(erf("Mul", {scaled, erf.number(0.5f)})));
  EXPECT_THAT(exact, HasSubstr("Gelu(%0)"));
  EXPECT_THAT(exact, Not(HasSubstr("approximate")));

  Formula tanh({2, 100}, DType::kF16);
  const ValueId cube = tanh("Mul", {tanh("Mul", {tanh.x, tanh.x}), tanh.x});
  const ValueId inner = tanh("Add", {tanh.x, tanh("Mul", {cube, tanh.number(0.044715f)})});
  const ValueId t = tanh("Tanh", {tanh("Mul", {inner, tanh.number(0.7978845608f)})});
  const ValueId half = tanh("Mul", {tanh.x, tanh.number(0.5f)});
  const Graph by_tanh = tanh.Finish(tanh("Mul", {half, tanh("Add", {t, tanh.number(1)})}));
  EXPECT_THAT(printed(by_tanh), HasSubstr("Gelu(%0) {approximate=true}"));

  Formula silu({2, 100}, DType::kF16);
  EXPECT_THAT(printed(silu.Finish(silu("Mul", {silu.x, silu("Sigmoid", {silu.x})}))),
              HasSubstr("Silu(%0)"));
  // A Silu with another factor, and one that ends at sixteen.
  Formula quick({2, 100}, DType::kF16);
  const ValueId s = quick("Sigmoid", {quick("Mul", {quick.x, quick.number(1.702f)})});
  EXPECT_THAT(printed(quick.Finish(quick("Mul", {quick.x, s}))), HasSubstr("Sigmoid"));
  Formula capped({2, 100}, DType::kF16);
  const ValueId swish = capped("Mul", {capped.x, capped("Sigmoid", {capped.x})});
  EXPECT_THAT(printed(capped.Finish(capped("Min", {swish, capped.number(16)}))), HasSubstr("Min"));
}

TEST_F(Activations, HardSwishOfMobileNets) {
  Formula f({2, 100});
  const ValueId six = f("Relu6", {f("Add", {f.x, f.number(3)})});
  ExpectBecomes(f.Finish(f("Div", {f("Mul", {f.x, six}), f.number(6)})), "HardSwish");
}

TEST_F(Activations, ANearMissStaysAsItIs) {
  Formula f({2, 100});
  const ValueId six = f("Relu6", {f("Add", {f.x, f.number(3)})});
  // 0.166 is not a sixth.
  const ValueId y = f("Mul", {f("Mul", {f.x, six}), f.number(0.166f)});
  const Graph graph = f.Finish(y);
  EXPECT_EQ(OpsOf(After(graph, {{"recognise", &RecogniseActivations}})), OpsOf(graph));
}

TEST_F(Activations, AValueReadElsewhereKeepsItsNodes) {
  Formula f({2, 100});
  const ValueId s = f("Sigmoid", {f.x});
  Graph graph = f.Finish(f("Mul", {f.x, s}));
  graph.AddOutput("s", s);
  EXPECT_EQ(OpsOf(After(graph, {{"recognise", &RecogniseActivations}})), "Sigmoid Mul");
}

TEST_F(Activations, TwoInputsAreNoActivation) {
  Formula f({2, 100});
  const ValueId other = f.graph().AddInput("other", Fact::Of(DType::kF32, Shape{2, 100}));
  const Graph graph = f.Finish(f("Mul", {other, f("Sigmoid", {f.x})}));
  EXPECT_EQ(OpsOf(After(graph, {{"recognise", &RecogniseActivations}})), "Sigmoid Mul");
}

class LayerNorms : public testing::PassTest {
 protected:
  Graph Recognised(const Graph& graph) {
    return After(graph, {{"recognise", &RecogniseLayerNorms}});
  }
  const std::vector<float> scale_ = {1, -2, 0.5f, 3, 1.5f}, offset_ = {0.25f, 0, -1, 2, 4};
};

TEST_F(LayerNorms, AsOnnxExportersWriteThem) {
  Formula f({4, 5});
  const ValueId d = f("Sub", {f.x, f.mean(f.x)});
  const ValueId v = f.mean(f("Pow", {d, f.number(2)}));
  const ValueId n = f("Div", {d, f("Sqrt", {f("Add", {v, f.number(1e-5f)})})});
  const ValueId scaled = f("Mul", {n, f.vector(scale_, {5})});
  const Graph graph = f.Finish(f("Add", {scaled, f.vector(offset_, {1, 5})}));
  const Graph after = Recognised(graph);
  EXPECT_EQ(OpsOf(after), "LayerNorm");
  ExpectSameResults(graph, after, 1e-5);
}

TEST_F(LayerNorms, AsTensorFlowWritesThem) {
  Formula f({4, 5});
  const ValueId m = f.mean(f.x);
  const ValueId v = f.mean(f("SquaredDifference", {f.x, m}));
  const ValueId r = f("Rsqrt", {f("Add", {v, f.number(1e-12f)})});
  const ValueId s = f("Mul", {r, f.vector(scale_, {5})});
  const ValueId shift = f("Sub", {f.vector(offset_, {5}), f("Mul", {m, s})});
  const Graph graph = f.Finish(f("Add", {f("Mul", {f.x, s}), shift}));
  const Graph after = Recognised(graph);
  EXPECT_EQ(OpsOf(after), "LayerNorm");
  ExpectSameResults(graph, after, 1e-5);
}

TEST_F(LayerNorms, AloneAndWithAnOffsetOnly) {
  for (const bool with_offset : {false, true}) {
    Formula f({4, 5});
    const ValueId d = f("Sub", {f.x, f.mean(f.x)});
    const ValueId v = f.mean(f("Square", {d}));
    ValueId y = f("Mul", {d, f("Rsqrt", {f("Add", {v, f.number(1e-3f)})})});
    if (with_offset) y = f("Add", {y, f.vector(offset_, {5})});
    const Graph graph = f.Finish(y);
    const Graph after = Recognised(graph);
    EXPECT_EQ(OpsOf(after), "LayerNorm");
    ExpectSameResults(graph, after, 1e-5);
  }
}

// As exporters write those of language models: x / sqrt(mean(x^2) + epsilon) * scale.
TEST_F(LayerNorms, ByTheRootOfTheMeanSquare) {
  for (const bool reciprocal : {false, true}) {
    Formula f({4, 5});
    const ValueId v = f.mean(f("Pow", {f.x, f.number(2)}));
    const ValueId root = f("Sqrt", {f("Add", {v, f.number(1e-6f)})});
    const ValueId n = reciprocal ? f("Mul", {f.x, f("Reciprocal", {root})}) : f("Div", {f.x, root});
    const Graph graph = f.Finish(f("Mul", {f.vector(scale_, {5}), n}));
    const Graph after = Recognised(graph);
    EXPECT_EQ(OpsOf(after), "RmsNorm");
    ExpectSameResults(graph, after, 1e-5);
  }
}

// The differences from the mean are divided by their root mean square: together that is a layer
// norm.
TEST_F(LayerNorms, ALayerNormWithoutAnOffsetIsOneNode) {
  Formula f({4, 5});
  const ValueId d = f("Sub", {f.x, f.mean(f.x)});
  const ValueId v = f.mean(f("Square", {d}));
  const ValueId n = f("Div", {d, f("Sqrt", {f("Add", {v, f.number(1e-5f)})})});
  EXPECT_EQ(OpsOf(Recognised(f.Finish(f("Mul", {n, f.vector(scale_, {5})})))), "LayerNorm");
}

// The other norm has no offset, and an offset before the scale is not one after it.
TEST_F(LayerNorms, AnOffsetStaysBehindTheRootOfTheMeanSquare) {
  Formula f({4, 5});
  const ValueId v = f.mean(f("Square", {f.x}));
  const ValueId n = f("Mul", {f.x, f("Rsqrt", {f("Add", {v, f.number(1e-6f)})})});
  const Graph graph = f.Finish(f("Add", {n, f.vector(offset_, {5})}));
  const Graph after = Recognised(graph);
  EXPECT_EQ(OpsOf(after), "RmsNorm Add");
  ExpectSameResults(graph, after, 1e-5);
}

// Constants stay in the model's mapped file, at any address.
TEST_F(LayerNorms, WithAnEpsilonAtAnOddAddress) {
  Formula f({4, 5});
  std::vector<std::byte> file(1 + sizeof(float));
  const float epsilon = 1e-3f;
  std::memcpy(file.data() + 1, &epsilon, sizeof(epsilon));
  const Tensor odd = Tensor::View({DType::kF32, {}}, std::span(file).subspan(1), nullptr);
  const ValueId d = f("Sub", {f.x, f.mean(f.x)});
  const ValueId v = f.mean(f("Square", {d}));
  const ValueId y = f("Mul", {d, f("Rsqrt", {f("Add", {v, f.graph().AddConstant(odd)})})});
  const Graph graph = f.Finish(y);
  const Graph after = Recognised(graph);
  EXPECT_EQ(OpsOf(after), "LayerNorm");
  ExpectSameResults(graph, after, 1e-5);
}

// As litert-torch writes them: the means lose their axes, those of size 1 too, and Reshapes give
// them back at the end.
TEST_F(LayerNorms, WithMeansThatLoseTheirAxes) {
  for (const bool batch : {false, true}) {
    const int64_t n = batch ? 2 : 1;
    Formula f({n, 3, 5});
    const auto ints = [&](std::vector<int64_t> v) {
      return f.graph().AddConstant(Tensor::Int64s(v));
    };
    const auto axes = batch ? ints({2}) : ints({0, -1});
    const ValueId kept = ints({n, 3, 1});
    const ValueId m = f("ReduceMean", {f.x, axes});
    const ValueId d = f("SquaredDifference", {f.x, f("Reshape", {m, kept})});
    const ValueId v = f("ReduceMean", {d, axes});
    const ValueId r = f("Rsqrt", {f("Add", {v, f.number(1e-5f)})});
    const ValueId shift = f("Sub", {f.number(0), f("Mul", {r, m})});
    const ValueId scaled = f("Mul", {f.x, f("Reshape", {r, kept})});
    const ValueId moved = f("Add", {scaled, f("Reshape", {shift, kept})});
    const ValueId y = f("Mul", {moved, f.vector(scale_, {5})});
    const Graph graph = f.Finish(f("Add", {y, f.vector(offset_, {5})}));
    const Graph after =
        After(graph, {{"restore", &RestoreAxes}, {"recognise", &RecogniseLayerNorms}});
    EXPECT_EQ(OpsOf(after), "LayerNorm") << Print(after);
    ExpectSameResults(graph, after, 1e-5);
  }
}

// A mean that stays without its axes, and one over more than the last.
TEST_F(LayerNorms, MeansThatDoNotGetTheirAxesBackStay) {
  Formula f({2, 3, 5});
  const auto ints = [&](std::vector<int64_t> v) {
    return f.graph().AddConstant(Tensor::Int64s(v));
  };
  const ValueId m = f("Square", {f("ReduceMean", {f.x, ints({2})})});
  const ValueId more = f("ReduceMean", {f.x, ints({0, 2})});
  const ValueId again = f("Reshape", {more, ints({1, 3, 1})});
  f.graph().AddOutput("again", again);
  EXPECT_EQ(OpsOf(After(f.Finish(m), {{"restore", &RestoreAxes}})),
            "ReduceMean Square ReduceMean Reshape");
}

TEST_F(LayerNorms, ASumInPlaceOfTheMeanIsAnother) {
  Formula f({4, 5});
  const ValueId d = f("Sub", {f.x, f.mean(f.x)});
  // Sample variance: over n - 1.
  const ValueId v = f("Mul", {f.mean(f("Square", {d})), f.number(1.25f)});
  const ValueId y = f("Mul", {d, f("Rsqrt", {f("Add", {v, f.number(1e-3f)})})});
  const Graph graph = f.Finish(y);
  EXPECT_EQ(OpsOf(Recognised(graph)), OpsOf(graph));
}

}  // namespace
}  // namespace oncilla
