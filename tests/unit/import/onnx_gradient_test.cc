// Gradient of ai.onnx.preview.training: each rule of differentiation against differences of the
// function itself, in doubles; derivatives of derivatives, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr int kDouble = 11;
constexpr const char* kTraining = "ai.onnx.preview.training";

using Sizes = std::vector<int64_t>;

// A node as bytes, which can be copied.
struct NodeBytes : std::string {
  NodeBytes(const OnnxNodeText& node) : std::string(node.bytes()) {}  // NOLINT: the same node
};

// y as a function of a and b, which have these shapes.
struct Function {
  std::string name;
  Sizes a, b;
  std::vector<NodeBytes> nodes;
  double from = 0.3;  // the least element of a and b
};

Tensor Doubles(const Sizes& sizes, const std::vector<double>& values) {
  Shape shape;
  for (int64_t size : sizes) shape.push_back(size);
  return Tensor::Of<double>(DType::kF64, shape, values);
}

std::vector<double> Numbers(const Sizes& sizes, double from) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(from + 1.7 * std::fabs(std::sin(1.0 + 2.3 * static_cast<double>(i))));
  }
  return out;
}

class OnnxGradient : public ::testing::Test {
 protected:
  OnnxGradient() : session_(*Session::Create(Runtime::Create({}), {.device = "cpu"})) {}

  Result<std::shared_ptr<Model>> Load(const OnnxGraphText& graph) {
    return session_->Load(
        folder_.Write("model.onnx", OnnxModelText(graph, 17, {}, {{kTraining, 1}})), {});
  }
  // a and b, the nodes, and a Gradient of `of` by both.
  static OnnxGraphText GraphOf(const Function& f, const std::string& of = "y") {
    OnnxGraphText graph;
    const auto dims = [](const Sizes& sizes) {
      return std::vector<OnnxDimText>(sizes.begin(), sizes.end());
    };
    graph.Input("a", dims(f.a), kDouble).Input("b", dims(f.b), kDouble).Ints("one", {1}, {1});
    for (const NodeBytes& node : f.nodes) graph.Node(node);
    graph.Node(Gradient({"a", "b"}, of, {"a", "b"}, {"da", "db"}));
    for (const char* name : {"y", "da", "db"}) graph.UnrankedOutput(name, kDouble);
    return graph;
  }
  static NodeBytes Gradient(const std::vector<std::string>& xs, const std::string& y,
                            const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) {
    return OnnxNodeText("Gradient", inputs, outputs, "slope")
        .Domain(kTraining)
        .Strings("xs", xs)
        .String("y", y);
  }
  static std::vector<Tensor> Run(Model& model, std::vector<NamedTensor> feeds) {
    RunRequest request;
    request.feeds = std::move(feeds);
    auto result = model.Run(request);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<Tensor> outputs;
    if (!result.ok()) return outputs;
    for (NamedTensor& output : result->outputs) outputs.push_back(std::move(output.second));
    return outputs;
  }

  // Compares the derivatives with central differences.
  void Check(const Function& f) {
    SCOPED_TRACE(f.name);
    const auto model = Load(GraphOf(f));
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<double> at[2] = {Numbers(f.a, f.from), Numbers(f.b, f.from + 0.1)};
    const auto run = [&] {
      return Run(**model, {{"a", Doubles(f.a, at[0])}, {"b", Doubles(f.b, at[1])}});
    };
    const auto sum = [&] {
      const auto outputs = run();
      double total = 0;
      for (double y : outputs.empty() ? std::vector<double>() : *ToDoubles(outputs[0])) total += y;
      return total;
    };
    const auto outputs = run();
    ASSERT_EQ(outputs.size(), 3u);
    constexpr double kStep = 1e-5;
    for (size_t k = 0; k < 2; ++k) {
      const auto slopes = *ToDoubles(outputs[1 + k]);
      ASSERT_EQ(slopes.size(), at[k].size());
      for (size_t i = 0; i < slopes.size(); ++i) {
        const double x = at[k][i];
        at[k][i] = x + kStep;
        const double above = sum();
        at[k][i] = x - kStep;
        const double expected = (above - sum()) / (2 * kStep);
        at[k][i] = x;
        EXPECT_NEAR(slopes[i], expected, 1e-6 * (1 + std::fabs(expected)))
            << "by " << k << ", " << i;
      }
    }
  }

  std::string Refusal(const OnnxGraphText& graph) {
    const auto model = Load(graph);
    if (!model.ok()) return Message(model.status());
    return Message((*model)->Executable({}).status());
  }

  TemporaryFolder folder_;
  std::shared_ptr<Session> session_;
};

// y = f(a * b), so that the derivative that comes in is not all ones; y = f(a) * b likewise.
Function OneInput(const std::string& op) {
  return {op,
          {2, 3},
          {2, 3},
          {OnnxNodeText("Mul", {"a", "b"}, {"p"}), OnnxNodeText(op, {"p"}, {"q"}),
           OnnxNodeText("Mul", {"q", "b"}, {"y"})}};
}
Function TwoInputs(const std::string& op, Sizes a, Sizes b) {
  return {op,
          std::move(a),
          std::move(b),
          {OnnxNodeText(op, {"a", "b"}, {"q"}), OnnxNodeText("Mul", {"q", "q"}, {"y"})}};
}

TEST_F(OnnxGradient, OneInput) {
  for (const char* op : {"Neg", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Relu", "Identity"}) {
    Check(OneInput(op));
  }
  Function negative = OneInput("Relu");  // on both sides of the bend
  negative.from = -0.9;
  Check(negative);
}

TEST_F(OnnxGradient, TwoInputsThatAreStretched) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    Check(TwoInputs(op, {2, 3}, {2, 3}));
    Check(TwoInputs(op, {2, 3}, {3}));
    Check(TwoInputs(op, {1, 3}, {4, 2, 1}));
    Check(TwoInputs(op, {}, {2, 2}));
  }
}

TEST_F(OnnxGradient, Products) {
  Check(TwoInputs("MatMul", {2, 3}, {3, 4}));
  Check(TwoInputs("MatMul", {5, 2, 3}, {3, 4}));
  Check(TwoInputs("MatMul", {3, 1, 2, 3}, {2, 3, 4}));
  for (const int64_t turn_a : {0, 1}) {
    for (const int64_t turn_b : {0, 1}) {
      Function f = {"Gemm",
                    turn_a == 0 ? Sizes{2, 3} : Sizes{3, 2},
                    turn_b == 0 ? Sizes{3, 4} : Sizes{4, 3},
                    {}};
      f.nodes = {OnnxNodeText("Gemm", {"a", "b"}, {"q"})
                     .Int("transA", turn_a)
                     .Int("transB", turn_b)
                     .Float("alpha", 0.5f),
                 OnnxNodeText("Exp", {"q"}, {"y"})};
      Check(f);
    }
  }
}

TEST_F(OnnxGradient, Powers) {
  // The exponent is a constant: b of a power cannot be differentiated.
  for (const double power : {0.0, 1.0, 2.0, -1.5}) {
    Function f = {StrCat("Pow ", power), {2, 3}, {3}, {}};
    f.nodes = {OnnxNodeText("Constant", {}, {"c"}).Float("value_float", static_cast<float>(power)),
               OnnxNodeText("Pow", {"a", "c"}, {"q"}), OnnxNodeText("Mul", {"q", "b"}, {"y"})};
    Check(f);
  }
}

TEST_F(OnnxGradient, Movements) {
  const auto with = [](const std::string& name, const NodeBytes& first, const NodeBytes& node) {
    return Function{
        name,
        {2, 3},
        {3},
        {first, node, OnnxNodeText("Mul", {"q", "q"}, {"r"}),
         OnnxNodeText("ReduceSum", {"r"}, {"s"}), OnnxNodeText("Mul", {"s", "b"}, {"y"})}};
  };
  const NodeBytes sizes = OnnxNodeText("Constant", {}, {"c"}).Ints("value_ints", {3, 1, 2});
  const NodeBytes axis = OnnxNodeText("Constant", {}, {"c"}).Ints("value_ints", {1});
  Check(with("Reshape", sizes, OnnxNodeText("Reshape", {"a", "c"}, {"q"})));
  Check(with("Unsqueeze", axis, OnnxNodeText("Unsqueeze", {"a", "c"}, {"q"})));
  Check(with("Transpose", axis, OnnxNodeText("Transpose", {"a"}, {"q"})));
  Check(with("Flatten", axis, OnnxNodeText("Flatten", {"a"}, {"q"}).Int("axis", 0)));
  Check(with("Squeeze", OnnxNodeText("Unsqueeze", {"a", "one"}, {"p"}),
             OnnxNodeText("Squeeze", {"p", "one"}, {"q"})));
  Check(with("Expand", OnnxNodeText("Constant", {}, {"c"}).Ints("value_ints", {4, 2, 3}),
             OnnxNodeText("Expand", {"a", "c"}, {"q"})));
  Function turned = {"Transpose perm", {2, 3, 4}, {3, 4, 2}, {}};
  turned.nodes = {OnnxNodeText("Transpose", {"a"}, {"q"}).Ints("perm", {1, 2, 0}),
                  OnnxNodeText("Mul", {"q", "b"}, {"y"})};
  Check(turned);
}

TEST_F(OnnxGradient, Reductions) {
  for (const char* op : {"ReduceSum", "ReduceMean"}) {
    for (const int64_t keep : {0, 1}) {
      Function f = {StrCat(op, " keepdims=", keep), {2, 3, 4}, {3, 4}, {}};
      OnnxNodeText reduced(op,
                           std::string(op) == "ReduceSum" ? std::vector<std::string>{"p", "axes"}
                                                          : std::vector<std::string>{"p"},
                           {"q"});
      reduced.Int("keepdims", keep);
      f.nodes = {OnnxNodeText("Mul", {"a", "b"}, {"p"})};
      if (std::string(op) == "ReduceSum") {
        f.nodes.push_back(OnnxNodeText("Constant", {}, {"axes"}).Ints("value_ints", {-1, 0}));
      } else {
        reduced.Ints("axes", {-1, 0});
      }
      f.nodes.push_back(reduced);
      f.nodes.push_back(OnnxNodeText("Exp", {"q"}, {"y"}));
      Check(f);
      f.nodes[f.nodes.size() - 2] = OnnxNodeText(op, {"p"}, {"q"}).Int("keepdims", keep);  // of all
      Check(f);
    }
  }
}

// An op that becomes several nodes, squares among them.
TEST_F(OnnxGradient, Norms) {
  Function f = {"MeanVarianceNormalization", {2, 3}, {3}, {}};
  f.nodes = {OnnxNodeText("MeanVarianceNormalization", {"a"}, {"q"}).Ints("axes", {1}),
             OnnxNodeText("Mul", {"q", "b"}, {"p"}), OnnxNodeText("Exp", {"p"}, {"y"})};
  Check(f);
}

// A value that is used twice, and one that is not used.
TEST_F(OnnxGradient, SumsOverUses) {
  Function f = {"uses", {2}, {2}, {}};
  f.nodes = {OnnxNodeText("Exp", {"a"}, {"p"}), OnnxNodeText("Mul", {"p", "a"}, {"q"}),
             OnnxNodeText("Add", {"q", "p"}, {"y"})};
  Check(f);
}

// Each side has the derivative where it is chosen.
TEST_F(OnnxGradient, Choices) {
  Function f = {"Where", {2, 3}, {3}, {}};
  f.nodes = {OnnxNodeText("Greater", {"a", "b"}, {"c"}), OnnxNodeText("Exp", {"a"}, {"p"}),
             OnnxNodeText("Where", {"c", "p", "b"}, {"q"}), OnnxNodeText("Mul", {"q", "q"}, {"y"})};
  Check(f);
}

// Through floats of 32 bits and back: y = a b, exactly for these numbers.
TEST_F(OnnxGradient, Casts) {
  Function f = {"Cast", {2}, {2}, {}};
  f.nodes = {OnnxNodeText("Cast", {"a"}, {"p"}).Int("to", 1),
             OnnxNodeText("Cast", {"p"}, {"q"}).Int("to", kDouble),
             OnnxNodeText("Mul", {"q", "b"}, {"y"})};
  const auto model = Load(GraphOf(f));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto out = Run(**model, {{"a", Doubles({2}, {1, 2})}, {"b", Doubles({2}, {3, 4})}});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(*ToDoubles(out[1]), (std::vector<double>{3, 4}));
  EXPECT_EQ(*ToDoubles(out[2]), (std::vector<double>{1, 2}));
}

// y = a^3 b: its second derivatives are 6 a b and 3 a^2.
TEST_F(OnnxGradient, OfGradients) {
  OnnxGraphText graph;
  graph.Input("a", {}, kDouble).Input("b", {}, kDouble);
  graph.Node(OnnxNodeText("Mul", {"a", "a"}, {"s"}));
  graph.Node(OnnxNodeText("Mul", {"s", "a"}, {"c"}));
  graph.Node(OnnxNodeText("Mul", {"c", "b"}, {"y"}));
  graph.Node(Gradient({"a", "b"}, "y", {"a", "b"}, {"da", "db"}));
  graph.Node(Gradient({"a", "b"}, "da", {"a", "b"}, {"daa", "dab"}));
  graph.Output("daa", {}, kDouble).Output("dab", {}, kDouble);
  const auto model = Load(graph);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto out = Run(**model, {{"a", Doubles({}, {2})}, {"b", Doubles({}, {5})}});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ((*ToDoubles(out[0]))[0], 60);
  EXPECT_EQ((*ToDoubles(out[1]))[0], 12);
}

// Each node differentiates a sum of the two before: the work doubles, and ends with an error.
TEST_F(OnnxGradient, OfManyGradientsEnds) {
  OnnxGraphText graph;
  graph.Input("s0", {}, kDouble).Input("s1", {}, kDouble);
  constexpr int kDepth = 50;
  for (int i = 2; i < kDepth; ++i) {
    const std::string before = StrCat("s", i - 1), sum = StrCat("t", i);
    graph.Node(OnnxNodeText("Mul", {StrCat("s", i - 2), before}, {sum}));
    graph.Node(Gradient({"s0", "s1"}, sum, {"s0", "s1"}, {StrCat("s", i)}));
  }
  graph.Output(StrCat("s", kDepth - 1), {}, kDouble);
  EXPECT_THAT(Refusal(graph), ::testing::AnyOf(HasSubstr("too many"), HasSubstr("too deeply")));
}

// The values that the node is given need not be those of the tensors that it names: by an
// intermediate h = a b at 7, y = h^2 has the slope 14.
TEST_F(OnnxGradient, AtOtherValues) {
  OnnxGraphText graph;
  graph.Input("a", {}, kDouble).Input("b", {}, kDouble);
  graph.Node(OnnxNodeText("Mul", {"a", "b"}, {"h"}));
  graph.Node(OnnxNodeText("Mul", {"h", "h"}, {"y"}));
  graph.Node(Gradient({"h"}, "y", {"b"}, {"dh"}));
  graph.Output("dh", {}, kDouble).Output("y", {}, kDouble);
  const auto model = Load(graph);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto out = Run(**model, {{"a", Doubles({}, {3})}, {"b", Doubles({}, {7})}});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ((*ToDoubles(out[0]))[0], 14);
  EXPECT_EQ((*ToDoubles(out[1]))[0], 441);
}

TEST_F(OnnxGradient, WhatHasNoRuleIsRefusedByName) {
  Function f = {"Sin", {2}, {2}, {OnnxNodeText("Sin", {"a"}, {"y"}, "wave")}};
  EXPECT_THAT(Refusal(GraphOf(f)), HasSubstr("the derivative of Sin (node 'slope/wave')"));
  f.nodes = {OnnxNodeText("Pow", {"a", "b"}, {"y"})};
  EXPECT_THAT(Refusal(GraphOf(f)), HasSubstr("derivatives by an exponent"));
  f.nodes = {OnnxNodeText("Exp", {"a"}, {"y"})};
  EXPECT_THAT(Refusal(GraphOf(f, "z")), HasSubstr("nothing computes 'z'"));
  OnnxGraphText unnamed;  // b is in neither xs nor zs
  unnamed.Input("a", {}, kDouble).Input("b", {}, kDouble).Output("da", {}, kDouble);
  unnamed.Node(OnnxNodeText("Mul", {"a", "b"}, {"y"}));
  unnamed.Node(Gradient({"a"}, "y", {"a"}, {"da"}));
  EXPECT_THAT(Refusal(unnamed), HasSubstr("the part from xs and zs to 'y'"));
  EXPECT_THAT(Refusal(GraphOf(f, "da")), HasSubstr("gradients"));
}

}  // namespace
}  // namespace oncilla
