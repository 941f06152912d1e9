// ONNX models with control flow, sequences and optional values, imported and run; expected results
// are literals. ONNX's own tests (tests/conformance) cover each op by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "engine/tensor/tensor_list.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kFloat = 1, kInt64 = 7, kBool = 9;

class OnnxControl : public ::testing::Test {
 protected:
  Result<std::shared_ptr<Model>> Load(const std::string& bytes) {
    ONCILLA_ASSIGN(session_, Session::Create(Runtime::Create({}), {.device = "cpu"}));
    return session_->Load(folder_.Write("model.onnx", bytes), {});
  }
  Result<std::vector<Tensor>> Run(const OnnxGraphText& graph, std::vector<NamedTensor> feeds,
                                  std::chrono::milliseconds timeout = {}, int64_t opset = 17,
                                  const std::vector<std::string>& functions = {}) {
    ONCILLA_ASSIGN(const auto model, Load(OnnxModelText(graph, opset, functions)));
    RunRequest request;
    request.feeds = std::move(feeds);
    request.timeout = timeout;
    ONCILLA_ASSIGN(RunResult result, model->Run(request));
    std::vector<Tensor> outputs;
    for (NamedTensor& output : result.outputs) outputs.push_back(std::move(output.second));
    return outputs;
  }
  std::string Refusal(const OnnxGraphText& graph, std::vector<NamedTensor> feeds = {}) {
    const auto result = Run(graph, std::move(feeds));
    EXPECT_FALSE(result.ok());
    return Message(result.status());
  }

  static Tensor Floats(Shape shape, std::vector<float> values) {
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  static Tensor Bool(bool value) {
    return Tensor::Copy({DType::kBool, {}}, std::as_bytes(std::span(&value, 1)));
  }
  static std::vector<double> Values(const Tensor& t) { return ToDoubles(t).value(); }

  TemporaryFolder folder_;
  std::shared_ptr<Session> session_;
};

// A graph that returns `name`, computed by one node from names of enclosing graphs.
std::string OneNode(const std::string& node, const std::string& name) {
  OnnxGraphText graph;
  graph.Node(node).Output(name, {});
  return graph.bytes();
}
std::string OneNode(const OnnxNodeText& node, const std::string& name) {
  return OneNode(node.bytes(), name);
}

std::string If(const std::string& cond, const std::string& output, const std::string& then_branch,
               const std::string& else_branch) {
  return OnnxNodeText("If", {cond}, {output}, "choose_" + output)
      .Graph("then_branch", then_branch)
      .Graph("else_branch", else_branch)
      .bytes();
}

TEST_F(OnnxControl, BranchesReadTheGraphsAroundThem) {
  OnnxGraphText inner;  // y = p ? x + w : x * h, where h is of the branch around it
  inner.Node(OnnxNodeText("Neg", {"x"}, {"h"}));
  inner.Node(If("p", "y2", OneNode(OnnxNodeText("Add", {"x", "w"}, {"s"}), "s"),
                OneNode(OnnxNodeText("Mul", {"x", "h"}, {"m"}), "m")));
  inner.Output("y2", {});
  OnnxGraphText graph;
  graph.Input("x", {2}).Input("q", {}, kBool).Input("p", {}, kBool).Output("y", {"n"});
  graph.Floats("w", {2}, {10, 20});
  graph.Node(If("q", "y", inner.bytes(), OneNode(OnnxNodeText("Identity", {"w"}, {"i"}), "i")));
  const auto run = [&](bool q, bool p) {
    const auto out = Run(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(q)}, {"p", Bool(p)}});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Values((*out)[0]) : std::vector<double>();
  };
  EXPECT_THAT(run(true, true), ElementsAre(11, 22));
  EXPECT_THAT(run(true, false), ElementsAre(-1, -4));
  EXPECT_THAT(run(false, true), ElementsAre(10, 20));
}

TEST_F(OnnxControl, BranchesMayGiveOtherShapes) {
  OnnxGraphText graph;
  graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {"n"});
  graph.Node(If("q", "z", OneNode(OnnxNodeText("Concat", {"x", "x"}, {"c"}).Int("axis", 0), "c"),
                OneNode(OnnxNodeText("Neg", {"x"}, {"m"}), "m")));
  graph.Node(OnnxNodeText("Relu", {"z"}, {"y"}));
  for (const bool q : {true, false}) {
    const auto out = Run(graph, {{"x", Floats({2}, {-1, 2})}, {"q", Bool(q)}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values((*out)[0]),
              q ? (std::vector<double>{0, 2, 0, 2}) : (std::vector<double>{1, 0}));
  }
}

TEST_F(OnnxControl, AKnownConditionTakesItsBranchWhileImporting) {
  OnnxGraphText graph;  // the branch that is not taken holds an unknown op
  graph.Input("x", {2}).Output("y", {2});
  graph.Node(OnnxNodeText("Identity", {"c"}, {"q"}));
  graph.Node(If("q", "y", OneNode(OnnxNodeText("Unheard", {"x"}, {"u"}), "u"),
                OneNode(OnnxNodeText("Neg", {"x"}, {"n"}), "n")));
  graph.Bools("c", {}, {false});
  const auto out = Run(graph, {{"x", Floats({2}, {1, 2})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-1, -2));
}

// As PyTorch writes squeeze(1): a branch for a size that x does not have would leave the rank open.
TEST_F(OnnxControl, AConditionOnKnownSizesTakesItsBranchToo) {
  for (const int64_t size : {1, 2}) {
    OnnxGraphText graph;
    graph.Input("x", {2, size}).Output("y", {"n"});
    graph.Ints("one", {}, {1}).Ints("axes", {1}, {1});
    graph.Node(OnnxNodeText("Shape", {"x"}, {"sizes"}));
    graph.Node(OnnxNodeText("Gather", {"sizes", "one"}, {"size"}));
    graph.Node(OnnxNodeText("Equal", {"size", "one"}, {"q"}));
    graph.Node(If("q", "z", OneNode(OnnxNodeText("Squeeze", {"x", "axes"}, {"s"}), "s"),
                  OneNode(OnnxNodeText("Identity", {"x"}, {"i"}), "i")));
    graph.Node(OnnxNodeText("Softmax", {"z"}, {"y"}).Int("axis", -1));
    const auto n = static_cast<size_t>(2 * size);
    const auto out = Run(graph, {{"x", Floats({2, size}, std::vector<float>(n, 3))}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].shape(), size == 1 ? (Shape{2}) : (Shape{2, 2}));
    EXPECT_EQ(Values((*out)[0]), std::vector<double>(n, 0.5));
  }
}

// A rank that the file states and the engine cannot infer is used, and checked at run time.
TEST_F(OnnxControl, AStatedRankIsChecked) {
  OnnxGraphText graph;
  graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {"n"}).Between("z", {"n"});
  graph.Ints("axes", {1}, {0});
  graph.Node(If("q", "z", OneNode(OnnxNodeText("Unsqueeze", {"x", "axes"}, {"u"}), "u"),
                OneNode(OnnxNodeText("Neg", {"x"}, {"m"}), "m")));
  graph.Node(OnnxNodeText("SplitToSequence", {"z"}, {"parts"}).Int("axis", -1));
  graph.Node(OnnxNodeText("ConcatFromSequence", {"parts"}, {"y"}).Int("axis", -1));
  const auto right = Run(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(false)}});
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_THAT(Values((*right)[0]), ElementsAre(-1, -2));
  const auto wrong = Run(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(true)}});
  EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument) << wrong.status();
}

TEST_F(OnnxControl, WhatBranchesLackIsToldTogether) {
  OnnxGraphText graph;
  graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {2});
  graph.Node(If("q", "y", OneNode(OnnxNodeText("Unheard", {"x"}, {"u"}), "u"),
                OneNode(OnnxNodeText("Unseen", {"x"}, {"n"}), "n")));
  const std::string text = Refusal(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(true)}});
  EXPECT_THAT(text, HasSubstr("Unheard"));
  EXPECT_THAT(text, HasSubstr("Unseen"));
}

TEST_F(OnnxControl, WrongGraphsAreRefused) {
  const auto with = [&](const std::string& then_branch) {
    OnnxGraphText graph;
    graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {2});
    graph.Node(If("q", "y", then_branch, OneNode(OnnxNodeText("Neg", {"x"}, {"n"}), "n")));
    return Refusal(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(true)}});
  };
  OnnxGraphText two;
  two.Node(OnnxNodeText("Neg", {"x"}, {"a"})).Output("a", {}).Output("a", {});
  EXPECT_THAT(with(two.bytes()), HasSubstr("then_branch gives 2 results for 1 outputs"));
  EXPECT_THAT(with(OneNode(OnnxNodeText("Neg", {"nothing"}, {"a"}), "a")),
              HasSubstr("nothing computes 'nothing'"));
  OnnxGraphText one;
  one.Input("x", {2}).Input("q", {}, kBool).Output("y", {2});
  const std::string right = OneNode(OnnxNodeText("Neg", {"x"}, {"n"}), "n");
  one.Node(OnnxNodeText("If", {"q"}, {"y"}).Graph("then_branch", right));
  EXPECT_THAT(Refusal(one), HasSubstr("'else_branch' must be one graph"));
  OnnxGraphText takes;
  takes.Input("a", {2}).Output("a", {});
  EXPECT_THAT(with(takes.bytes()), HasSubstr("then_branch takes inputs"));
  OnnxGraphText ints;
  ints.Node(OnnxNodeText("Cast", {"x"}, {"a"}).Int("to", kInt64)).Output("a", {});
  EXPECT_THAT(with(ints.bytes()), HasSubstr("in one branch and"));
}

// `depth` nested branches, the innermost of which returns -x, the others |x|.
std::string Nested(int depth) {
  const std::string other = OneNode(OnnxNodeText("Abs", {"x"}, {"r"}), "r");
  std::string graph = OneNode(OnnxNodeText("Neg", {"x"}, {"r"}), "r");
  for (int i = 0; i < depth; ++i) graph = OneNode(If("q", "r", graph, other), "r");
  return graph;
}

TEST_F(OnnxControl, DepthHasABound) {
  const auto with = [&](int depth) {
    OnnxGraphText graph;
    graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {2});
    const std::string inner = Nested(depth);
    graph.Node(If("q", "y", inner, OneNode(OnnxNodeText("Abs", {"x"}, {"r"}), "r")));
    return Run(graph, {{"x", Floats({2}, {1, 2})}, {"q", Bool(true)}});
  };
  const auto few = with(55);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(Values((*few)[0]), ElementsAre(-1, -2));
  const auto many = with(200);
  EXPECT_EQ(many.status().code(), Code::kDataLoss);
  EXPECT_THAT(Message(many.status()), HasSubstr("too deep"));
}

// for (i = 0; i < n && more; ++i) { sum += i * x; grown = concat(grown, sum); collects sum }
OnnxGraphText Growing() {
  OnnxGraphText body;
  body.Input("i", {}, kInt64).Input("more", {}, kBool).Input("sum", {1}).Input("grown", {"k"});
  body.Node(OnnxNodeText("Cast", {"i"}, {"f"}).Int("to", kFloat));
  body.Node(OnnxNodeText("Mul", {"f", "x"}, {"step"}));
  body.Node(OnnxNodeText("Add", {"sum", "step"}, {"sum2"}));
  body.Node(OnnxNodeText("Concat", {"grown", "sum2"}, {"grown2"}).Int("axis", 0));
  body.Node(OnnxNodeText("Less", {"sum2", "most"}, {"more2"}));
  body.Node(OnnxNodeText("Identity", {"sum2"}, {"each"}));
  body.Output("more2", {}, kBool).Output("sum2", {1}).Output("grown2", {"k"}).Output("each", {1});
  OnnxGraphText graph;
  graph.Input("n", {}, kInt64).Input("x", {1}).Input("more", {}, kBool);
  graph.Output("s", {1}).Output("g", {"k"}).Output("e", {"r", 1});
  graph.Floats("zero", {1}, {0}).Floats("begin", {0}, {}).Floats("most", {1}, {50});
  graph.Node(OnnxNodeText("Loop", {"n", "more", "zero", "begin"}, {"s", "g", "e"}, "loop")
                 .Graph("body", body.bytes()));
  return graph;
}

TEST_F(OnnxControl, LoopsCarryWhatGrowsAndCollect) {
  const auto run = [&](int64_t n, float x, bool more) {
    const auto out = Run(
        Growing(), {{"n", Tensor::ScalarInt64(n)}, {"x", Floats({1}, {x})}, {"more", Bool(more)}});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : std::vector<Tensor>(3);
  };
  auto out = run(4, 1, true);
  EXPECT_THAT(Values(out[0]), ElementsAre(6));
  EXPECT_THAT(Values(out[1]), ElementsAre(0, 1, 3, 6));
  EXPECT_EQ(out[2].shape(), (Shape{4, 1}));
  EXPECT_THAT(Values(out[2]), ElementsAre(0, 1, 3, 6));
  out = run(100, 20, true);  // the condition ends it
  EXPECT_THAT(Values(out[1]), ElementsAre(0, 20, 60));
  for (const auto& [n, more] :
       {std::pair(int64_t{0}, true), {int64_t{-3}, true}, {int64_t{9}, false}}) {
    out = run(n, 1, more);
    EXPECT_THAT(Values(out[0]), ElementsAre(0));
    EXPECT_EQ(out[1].shape(), (Shape{0}));
    EXPECT_EQ(out[2].shape(), (Shape{0, 1}));
  }
}

TEST_F(OnnxControl, ALoopOfManyRoundsEndsByATimeLimit) {
  const auto out = Run(Growing(),
                       {{"n", Tensor::ScalarInt64(1'000'000'000'000'000'000)},
                        {"x", Floats({1}, {0})},
                        {"more", Bool(true)}},
                       std::chrono::milliseconds(200));
  EXPECT_EQ(out.status().code(), Code::kDeadlineExceeded) << out.status();
}

TEST_F(OnnxControl, ALoopWithoutAConditionMayNotComputeOne) {
  OnnxGraphText body;
  body.Input("i", {}, kInt64).Input("more", {}, kBool).Input("v", {1});
  body.Node(OnnxNodeText("Less", {"v", "v"}, {"more2"}));
  body.Node(OnnxNodeText("Neg", {"v"}, {"v2"}));
  body.Output("more2", {}, kBool).Output("v2", {1});
  OnnxGraphText graph;
  graph.Input("x", {1}).Input("n", {}, kInt64).Output("y", {1});
  graph.Node(OnnxNodeText("Loop", {"n", "", "x"}, {"y"}).Graph("body", body.bytes()));
  EXPECT_THAT(Refusal(graph, {{"x", Floats({1}, {1})}, {"n", Tensor::ScalarInt64(1)}}),
              HasSubstr("no condition is given"));
}

TEST_F(OnnxControl, WrongLoopsAreRefused) {
  OnnxGraphText body;  // takes one value too many
  body.Input("i", {}, kInt64).Input("more", {}, kBool).Input("v", {1}).Input("w", {1});
  body.Output("more", {}, kBool).Output("v", {1});
  OnnxGraphText graph;
  graph.Input("x", {1}).Output("y", {1});
  graph.Node(OnnxNodeText("Loop", {"", "", "x"}, {"y"}).Graph("body", body.bytes()));
  EXPECT_THAT(Refusal(graph), HasSubstr("its body takes 4 inputs, not 3"));
  OnnxGraphText few;
  few.Input("i", {}, kInt64).Input("more", {}, kBool).Input("v", {1}).Output("more", {}, kBool);
  OnnxGraphText second;
  second.Input("x", {1}).Output("y", {1});
  second.Node(OnnxNodeText("Loop", {"", "", "x"}, {"y"}).Graph("body", few.bytes()));
  EXPECT_THAT(Refusal(second), HasSubstr("its body gives 1 results"));
}

// References to attributes also work in graphs within a function's nodes.
TEST_F(OnnxControl, FunctionsHoldGraphs) {
  std::string function;
  {
    protozero::pbf_writer writer(function);
    writer.add_string(1, "Choose");
    writer.add_string(4, "v");
    writer.add_string(4, "c");
    writer.add_string(5, "r");
    writer.add_string(6, "alpha");
    OnnxGraphText then_branch;
    then_branch.Node(OnnxNodeText("LeakyRelu", {"v"}, {"t"}).Reference("alpha", "alpha", 1));
    then_branch.Output("t", {});
    writer.add_message(
        7, If("c", "r", then_branch.bytes(), OneNode(OnnxNodeText("Abs", {"v"}, {"e"}), "e")));
    protozero::pbf_writer import(writer, 9);
    import.add_string(1, "");
    import.add_int64(2, 17);
    import.commit();
    writer.add_string(10, "own");
  }
  OnnxGraphText graph;
  graph.Input("x", {2}).Input("q", {}, kBool).Output("y", {2});
  graph.Node(OnnxNodeText("Choose", {"x", "q"}, {"y"}).Domain("own").Float("alpha", 0.5F));
  for (const bool q : {true, false}) {
    const auto out = Run(graph, {{"x", Floats({2}, {-4, 2})}, {"q", Bool(q)}}, {}, 17, {function});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values((*out)[0]), q ? (std::vector<double>{-2, 2}) : (std::vector<double>{4, 2}));
  }
}

TEST_F(OnnxControl, SequencesGoInAndOut) {
  OnnxGraphText graph;
  graph.Sequence("xs", {"n"}).Input("x", {"m"}).SequenceOutput("ys", {"n"}).Output("y", {"k"});
  graph.Output("l", {}, kInt64);
  graph.Ints("zero", {}, {0}).Ints("last", {}, {-1});
  graph.Node(OnnxNodeText("SequenceInsert", {"xs", "x", "zero"}, {"ys"}));
  graph.Node(OnnxNodeText("SequenceAt", {"ys", "last"}, {"y"}));
  graph.Node(OnnxNodeText("SequenceLength", {"ys"}, {"l"}));
  TensorList list(DType::kF32);
  list.Push(Floats({1}, {5}));
  list.Push(Floats({2}, {6, 7}));
  const std::vector<NamedTensor> feeds = {{"xs", Tensor::OfList(list)},
                                          {"x", Floats({3}, {1, 2, 3})}};
  const auto out = Run(graph, feeds);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_TRUE((*out)[0].is_list());
  ASSERT_EQ((*out)[0].list().size(), 3);
  EXPECT_THAT(Values((*out)[0].list().at(0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values((*out)[0].list().at(2)), ElementsAre(6, 7));
  EXPECT_THAT(Values((*out)[1]), ElementsAre(6, 7));
  EXPECT_THAT(Values((*out)[2]), ElementsAre(3));
  // Elements must have the type and shape that the model states.
  list.Push(Floats({1, 1}, {5}));
  EXPECT_THAT(Refusal(graph, {{"xs", Tensor::OfList(list)}, {"x", Floats({1}, {1})}}),
              HasSubstr("its element 2 is f32[1,1]"));
  EXPECT_THAT(Refusal(graph, {{"xs", Floats({1}, {1})}, {"x", Floats({1}, {1})}}),
              HasSubstr("must be list<f32[?]>"));
}

TEST_F(OnnxControl, OtherOpsTakeNoSequences) {
  OnnxGraphText graph;
  graph.Sequence("xs", {"n"}).Output("y", {"k"});
  graph.Node(OnnxNodeText("Relu", {"xs"}, {"y"}));
  EXPECT_THAT(Refusal(graph, {{"xs", Tensor::OfList(TensorList(DType::kF32))}}),
              HasSubstr("input 0 is a sequence"));
}

TEST_F(OnnxControl, PositionsOutsideASequenceFail) {
  for (const int64_t at : {-3, 2}) {
    OnnxGraphText graph;
    graph.Sequence("xs", {"n"}).Input("at", {}, kInt64).Output("y", {"n"});
    graph.Node(OnnxNodeText("SequenceAt", {"xs", "at"}, {"y"}));
    TensorList list(DType::kF32);
    list.Push(Floats({1}, {5}));
    list.Push(Floats({1}, {6}));
    EXPECT_THAT(Refusal(graph, {{"xs", Tensor::OfList(list)}, {"at", Tensor::ScalarInt64(at)}}),
                HasSubstr("outside a list of 2 elements"));
  }
}

}  // namespace
}  // namespace oncilla
