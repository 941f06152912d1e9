// ONNX models imported whole: names, functions, external data, and what is refused.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "engine/graph/verify.h"
#include "engine/import/onnx/import.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;

class OnnxImport : public ::testing::Test {
 protected:
  void Open(const std::string& bytes) {
    auto model = OpenModel(folder_.Write("model.onnx", bytes), {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  Result<Module> Import(ImportRequest request = {}) {
    auto module = model_->Import(request, OpSet::Builtin());
    if (module.ok()) {
      EXPECT_TRUE(Verify(module->main).ok());
    }
    return module;
  }
  // The first output for x = {-1, 2, 3} of shape [1,3], or the failure.
  Result<std::vector<double>> Run(ImportRequest request = {}) {
    ONCILLA_ASSIGN(const Module module, Import(std::move(request)));
    const float x[] = {-1, 2, 3};
    ONCILLA_ASSIGN(const auto out,
                   RunGraph(module.main, {{"x", Tensor::Of<float>(DType::kF32, {1, 3}, x)}}));
    return ToDoubles(out[0]);
  }
  std::string Refusal(ImportRequest request = {}) {
    const auto module = Import(std::move(request));
    EXPECT_FALSE(module.ok());
    return Message(module.status());
  }

  TemporaryFolder folder_;
  std::unique_ptr<ModelSource> model_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Each node is checked independently: one that reads an unsupported node is checked with the types
// and shapes that the file states.
TEST_F(OnnxImport, NodesAreJudgedOneByOne) {
  OnnxGraphText graph;
  graph.Input("x", {"batch", 3}).Output("y", {"batch", 3}).Output("z", {});
  graph.Between("b", {"batch", 3});
  graph.Node(OnnxNodeText("Relu", {"x"}, {"a"}, "first"));
  graph.Node(OnnxNodeText("NoSuchOp", {"a"}, {"b", "c"}, "second"));
  graph.Node(OnnxNodeText("Add", {"b", "x"}, {"y"}, "third"));
  graph.Node(OnnxNodeText("Relu", {"c"}, {"z"}, "fourth"));  // nothing states the type of c
  graph.Node(OnnxNodeText("Relu", {"y"}, {"dead"}, "fifth").Int("no_such_attribute", 1));
  Open(OnnxModelText(graph));
  const auto judged = model_->JudgeNodes(OpSet::Builtin());
  ASSERT_TRUE(judged.ok()) << judged.status();
  ASSERT_EQ(judged->size(), 5);
  EXPECT_EQ((*judged)[1].node, "second");
  EXPECT_EQ((*judged)[1].op, "NoSuchOp");
  EXPECT_EQ((*judged)[0].reason, "");
  EXPECT_SAYS((*judged)[1].reason, "not supported: 'NoSuchOp'");
  EXPECT_EQ((*judged)[2].reason, "");
  EXPECT_SAYS((*judged)[3].reason, "the model does not state");
  EXPECT_SAYS((*judged)[4].reason, "no_such_attribute");
}

// An output that the engine does not compute matters only if it is read.
TEST_F(OnnxImport, JudgesOutputsThatAreRead) {
  for (const bool read : {false, true}) {
    OnnxGraphText graph;
    graph.Input("x", {"batch", 3}).Output("y", {"batch", 3});
    // An output that the op does not have, or that no row computes.
    if (read) graph.Output("more", {3});
    graph.Between("more", {3});
    graph.Node(OnnxNodeText("Relu", {"x"}, {"y", "more"}));
    Open(OnnxModelText(graph, 7));
    const auto judged = model_->JudgeNodes(OpSet::Builtin());
    ASSERT_TRUE(judged.ok()) << judged.status();
    EXPECT_EQ((*judged)[0].reason.empty(), !read) << (*judged)[0].reason;
  }
}

TEST_F(OnnxImport, NamesOfInputsOutputsAndTensorsBetween) {
  OnnxGraphText graph;
  graph.Input("x", {"batch", 3}).Input("w", {3, 2}).Input("unused", {1}).Output("y", {"batch", 2});
  graph.Floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});  // listed as an input too, as old files do
  // The file's order is not the order of computing.
  graph.Node(OnnxNodeText("Relu", {"m"}, {"y"}));
  graph.Node(OnnxNodeText("MatMul", {"x", "w"}, {"m"}));
  Open(OnnxModelText(graph));
  EXPECT_EQ(model_->format(), "ONNX");
  const Signature& s = model_->signatures()[0];
  ASSERT_EQ(s.inputs.size(), 2u);
  EXPECT_EQ(s.inputs[0].name, "x");
  EXPECT_EQ(StrCat(s.inputs[0].shape), "[batch,3]");
  EXPECT_EQ(s.outputs[0].name, "y");

  const auto module = Import();
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->main.inputs().size(), 1u);  // only what the output needs
  EXPECT_EQ(StrCat(module->main.fact(module->main.outputs()[0].value)), "f32[batch,2]");
  EXPECT_EQ(*Run(), (std::vector<double>{20, 24}));
  EXPECT_EQ(*Run({"", {}, {"m"}}), (std::vector<double>{20, 24}));

  // An input with a default may be fed; a tensor between nodes only if the file states its type.
  const auto fed = Import({"", {"x", "w"}, {}});
  ASSERT_TRUE(fed.ok()) << fed.status();
  EXPECT_EQ(fed->main.inputs()[1].name, "w");
  EXPECT_SAYS(Refusal({"", {"m"}, {}}), "input 'm'");
  EXPECT_SAYS(Refusal({"", {"unused"}, {}}), "the input 'x' is needed and not fed");
  EXPECT_SAYS(Refusal({"", {"z"}, {}}), "there is no input 'z'");
  EXPECT_SAYS(Refusal({"", {"x", "x"}, {}}), "input 'x' is given twice");
  EXPECT_SAYS(Refusal({"", {}, {"yy"}}), "there is no output 'yy'; did you mean 'y'?");
  EXPECT_EQ(Import({"serving", {}, {}}).status().code(), Code::kNotFound);
}

// The node runs for its other output: the fed one must keep the fed value.
TEST_F(OnnxImport, OneOfTwoOutputsIsFed) {
  OnnxGraphText graph;
  graph.Input("x", {1, 4}).Between("a", {1, 2}).Output("y", {1, 2});
  graph.Node(OnnxNodeText("Split", {"x"}, {"a", "b"}).Int("axis", 1));
  graph.Node(OnnxNodeText("Sub", {"a", "b"}, {"y"}));
  Open(OnnxModelText(graph));
  const auto module = Import({"", {"x", "a"}, {}});
  ASSERT_TRUE(module.ok()) << module.status();
  const float x[] = {1, 2, 3, 4}, a[] = {10, 20};
  const auto out = RunGraph(module->main, {{"x", Tensor::Of<float>(DType::kF32, {1, 4}, x)},
                                           {"a", Tensor::Of<float>(DType::kF32, {1, 2}, a)}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*ToDoubles((*out)[0]), (std::vector<double>{7, 16}));
}

Tensor Floats(Shape shape, std::vector<float> values) {
  return Tensor::Of<float>(DType::kF32, std::move(shape), values);
}

// Two heads of queries share one of keys and values; with queries of zero all visible keys have the
// same weight.
TEST_F(OnnxImport, AttentionSeesWhatMasksLeave) {
  OnnxGraphText graph;
  graph.Input("q", {1, "n", 2}).Input("k", {1, "n", 1}).Input("v", {1, "n", 1});
  graph.Input("m", {"n", "n"}).Output("y", {1, "n", 2}).Output("w", {1, 2, "n", "n"});
  graph.Node(OnnxNodeText("Attention", {"q", "k", "v", "m"}, {"y", "", "", "w"})
                 .Int("q_num_heads", 2)
                 .Int("kv_num_heads", 1)
                 .Int("is_causal", 1)
                 .Int("qk_matmul_output_mode", 3));
  Open(OnnxModelText(graph, 23));
  const auto module = Import();
  ASSERT_TRUE(module.ok()) << module.status();
  const float off = -INFINITY;
  const auto out = RunGraph(module->main, {{"q", Floats({1, 3, 2}, {0, 0, 0, 0, 0, 0})},
                                           {"k", Floats({1, 3, 1}, {5, -7, 9})},
                                           {"v", Floats({1, 3, 1}, {10, 20, 60})},
                                           {"m", Floats({3, 3}, {off, 0, 0, 0, 0, 0, 0, off, 0})}});
  ASSERT_TRUE(out.ok()) << out.status();
  // The first query sees no key; the second the first two; the third the first and itself.
  EXPECT_EQ(*ToDoubles((*out)[0]), (std::vector<double>{0, 0, 15, 15, 35, 35}));
  EXPECT_EQ((*out)[1].shape(), (Shape{1, 2, 3, 3}));
  EXPECT_EQ((*ToDoubles((*out)[1]))[12], 0.5);
}

// A quarter turn, of pairs of halves and of neighbours; elements beyond rotary_embedding_dim do not
// change.
TEST_F(OnnxImport, RotaryEmbeddingTurnsPairs) {
  for (const bool interleaved : {false, true}) {
    OnnxGraphText graph;
    graph.Input("x", {1, 1, 5}).Output("y", {1, 1, 5});
    graph.Floats("cos", {1, 1, 2}, {0, 0}).Floats("sin", {1, 1, 2}, {1, 1});
    graph.Node(OnnxNodeText("RotaryEmbedding", {"x", "cos", "sin"}, {"y"})
                   .Int("num_heads", 1)
                   .Int("rotary_embedding_dim", 4)
                   .Int("interleaved", interleaved));
    Open(OnnxModelText(graph, 23));
    const auto module = Import();
    ASSERT_TRUE(module.ok()) << module.status();
    const auto out = RunGraph(module->main, {{"x", Floats({1, 1, 5}, {1, 2, 3, 4, 5})}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*ToDoubles((*out)[0]), interleaved ? (std::vector<double>{-2, 1, -4, 3, 5})
                                                 : (std::vector<double>{-3, -4, 1, 2, 5}));
  }
}

// Frames of four points with a stride of two: a cosine with one period per frame is in bin one.
TEST_F(OnnxImport, StftIsAConvolution) {
  OnnxGraphText graph;
  graph.Input("x", {1, 6, 1}).Output("y", {1, 2, 3, 2});
  graph.Node(OnnxNodeText("Constant", {}, {"step"}).Int("value_int", 2));
  graph.Node(OnnxNodeText("Constant", {}, {"length"}).Int("value_int", 4));
  graph.Node(OnnxNodeText("STFT", {"x", "step", "", "length"}, {"y"}));
  Open(OnnxModelText(graph));
  const auto module = Import();
  ASSERT_TRUE(module.ok()) << module.status();
  const auto out = RunGraph(module->main, {{"x", Floats({1, 6, 1}, {1, 0, -1, 0, 1, 0})}});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].shape(), (Shape{1, 2, 3, 2}));
  const auto bins = *ToDoubles((*out)[0]);
  const double wanted[] = {0, 0, 2, 0, 0, 0, 0, 0, -2, 0, 0, 0};
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(bins[i], wanted[i], 1e-6) << i;
}

TEST_F(OnnxImport, ListsEverythingUnsupportedAtOnce) {
  OnnxGraphText body;
  body.Output("b", {1}).Node(OnnxNodeText("Relu", {"x"}, {"b"}));
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Wobble", {"x"}, {"a"}, "first"));
  graph.Node(OnnxNodeText("Wobble", {"a"}, {"b"}, "second"));
  graph.Node(OnnxNodeText("Iterate", {"x"}, {"c"}, "branch").Graph("body", body.bytes()));
  graph.Node(OnnxNodeText("Cast", {"x"}, {"d"}, "to_pairs").Int("to", 14));
  graph.Node(OnnxNodeText("Mangle", {"x"}, {"e"}).Domain("com.other"));
  graph.Node(OnnxNodeText("Relu", {"x"}, {"f"}, "typo").Float("alfa", 1));
  graph.Node(OnnxNodeText("Sum", {"b", "c", "d", "e", "f"}, {"y"}));
  graph.Node(OnnxNodeText("Wrangle", {"x"}, {"nobody_needs_me"}));
  Open(OnnxModelText(graph));
  const std::string text = Refusal();
  EXPECT_SAYS(text, "5 ops are not supported: ");
  EXPECT_SAYS(text, "'Wobble' (opset 17) in 2 nodes: 'first', 'second'");
  EXPECT_SAYS(text, "'Iterate' (it has a subgraph) in 1 node: 'branch'");
  EXPECT_SAYS(text, "'Cast' (the type COMPLEX64) in 1 node: 'to_pairs'");
  EXPECT_SAYS(text, "'com.other.Mangle' (the model imports no opset for it) in 1 node: 'e'");
  EXPECT_SAYS(text, "'Relu' (with the attribute 'alfa') in 1 node: 'typo'");
  EXPECT_EQ(text.find("Wrangle"), std::string::npos);
  EXPECT_EQ(Import().status().code(), Code::kUnimplemented);
  // Only the nodes that the fetches need are checked.
  EXPECT_SAYS(Refusal({"", {}, {"c"}}), "1 op is not supported: 'Iterate'");
}

TEST_F(OnnxImport, RefusesVersionsItDoesNotKnow) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3}).Node(OnnxNodeText("Relu", {"x"}, {"y"}, "r"));
  Open(OnnxModelText(graph, 99));
  EXPECT_SAYS(Refusal(), "'Relu' (of opset 99; versions up to 28 are) in 1 node: 'r'");
  OnnxGraphText window;
  window.Input("x", {}, 7).Output("y", {"n"}).Node(OnnxNodeText("HannWindow", {"x"}, {"y"}));
  Open(OnnxModelText(window, 16));
  EXPECT_SAYS(Refusal(), "'HannWindow' (of opset 16; versions from 17 are)");
}

TEST_F(OnnxImport, RefusesAnInputListedTwice) {
  OnnxGraphText graph;
  graph.Input("x", {3}).Input("x", {3}).Output("y", {3});
  graph.Node(OnnxNodeText("Relu", {"x"}, {"y"}));
  Open(OnnxModelText(graph));
  EXPECT_SAYS(Refusal(), "two inputs are named 'x'");
  EXPECT_SAYS(Refusal({"", {"x"}, {}}), "two inputs are named 'x'");
}

TEST_F(OnnxImport, NamesTheNodeOfABrokenGraph) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Add", {"x", "lost"}, {"y"}, "sum"));
  Open(OnnxModelText(graph));
  EXPECT_SAYS(Refusal(), "node 'sum' (Add): nothing computes 'lost'");
  EXPECT_EQ(Details(Import().status()).node, "sum");

  OnnxGraphText circle;
  circle.Input("x", {1, 3}).Output("y", {1, 3});
  circle.Node(OnnxNodeText("Add", {"x", "z"}, {"y"})).Node(OnnxNodeText("Relu", {"y"}, {"z"}));
  Open(OnnxModelText(circle));
  EXPECT_SAYS(Refusal(), "has a cycle");

  OnnxGraphText twice;
  twice.Input("x", {1, 3}).Output("y", {1, 3});
  twice.Node(OnnxNodeText("Abs", {"x"}, {"y"})).Node(OnnxNodeText("Relu", {"x"}, {"y"}));
  Open(OnnxModelText(twice));
  EXPECT_SAYS(Refusal(), "two nodes compute 'y'");

  OnnxGraphText input;
  input.Input("x", {1, 3}).Output("y", {1, 3});
  input.Node(OnnxNodeText("Abs", {"x"}, {"y"})).Node(OnnxNodeText("Relu", {"y"}, {"x"}));
  Open(OnnxModelText(input));
  EXPECT_SAYS(Refusal(), "a node computes 'x', which is an input or a constant");

  // Found by fuzzing: -1 or NaN as an unsigned factor, and no axis to resize.
  OnnxGraphText factor;
  factor.Input("x", {1, 3}).Input("c", {1, 3}, 4).Output("y", {1, 3}, 4);
  factor.Node(OnnxNodeText("Gemm", {"c", "c", "c"}, {"y"}, "n").Int("transB", 1).Float("beta", -1));
  Open(OnnxModelText(factor));
  EXPECT_SAYS(Refusal(), "-1 is no u16");
  OnnxGraphText scalar;
  scalar.Input("x", {1, 3}).Output("y", {1}).Floats("one", {}, {1}).Floats("scales", {0}, {});
  scalar.Node(OnnxNodeText("Resize", {"one", "scales"}, {"y"}, "n"));
  Open(OnnxModelText(scalar, 10));
  EXPECT_SAYS(Refusal(), "no axes");

  OnnxGraphText few;
  few.Input("x", {1, 3}).Output("y", {1, 3}).Node(OnnxNodeText("Add", {"x", ""}, {"y"}, "n"));
  Open(OnnxModelText(few));
  EXPECT_SAYS(Refusal(), "node 'n' (Add): has 1 inputs and needs 2");

  OnnxGraphText wrong;
  wrong.Input("x", {1, 3}).Output("y", {1, 3});
  wrong.Node(OnnxNodeText("Elu", {"x"}, {"y"}, "n").Int("alpha", 1));
  Open(OnnxModelText(wrong));
  EXPECT_SAYS(Refusal(), "node 'n' (Elu): attribute 'alpha' has the wrong type");
}

TEST_F(OnnxImport, RefusesSizesThatDoNotFitTogether) {
  const auto lstm = [&](int64_t hidden) {
    OnnxGraphText graph;
    graph.Input("x", {2, 1, 3}).Output("y", {2, 1, 1, 2});
    graph.Floats("w", {1, 8, 3}, std::vector<float>(24))
        .Floats("r", {1, 8, 2}, std::vector<float>(16));
    graph.Node(OnnxNodeText("LSTM", {"x", "w", "r"}, {"y"}, "l").Int("hidden_size", hidden));
    Open(OnnxModelText(graph));
  };
  lstm(2);
  EXPECT_TRUE(Import().ok());
  lstm(3);
  EXPECT_SAYS(Refusal(), "node 'l' (LSTM): hidden_size is 3 and the recurrent weights are for 2");

  const auto pool = [&](const std::string& op, int64_t pad, int64_t dilation) {
    OnnxGraphText graph;
    graph.Input("x", {1, 1, 5, 5}).Output("y", {1, 1, "h", "w"});
    graph.Node(OnnxNodeText(op, {"x"}, {"y"}, "p")
                   .Ints("kernel_shape", {2, 2})
                   .Ints("pads", {0, 0, pad, 0})
                   .Ints("dilations", {dilation, dilation}));
    Open(OnnxModelText(graph, 19));
  };
  for (const char* op : {"MaxPool", "AveragePool"}) {
    pool(op, 1, 1);
    EXPECT_TRUE(Import().ok()) << op;
    pool(op, 2, 2);
    EXPECT_TRUE(Import().ok()) << op;
    pool(op, 2, 1);
    EXPECT_SAYS(Refusal(), "the padding 2 is not below the window's size 2");
  }

  // ONNX multiplies vectors.
  OnnxGraphText product;
  product.Input("a", {3}).Input("b", {3}).Output("y", {});
  product.Node(OnnxNodeText("MatMul", {"a", "b"}, {"y"}));
  Open(OnnxModelText(product));
  EXPECT_TRUE(Import().ok());
}

// own.Scaled(x) {factor = 3}: LeakyRelu with alpha taken from the caller, then x + that.
std::string ScaledFunction(const std::string& inner_op = "LeakyRelu") {
  std::string bytes;
  protozero::pbf_writer function(bytes);
  function.add_string(1, "Scaled");
  function.add_string(4, "in");
  function.add_string(5, "out");
  function.add_string(6, "slope");
  function.add_message(
      7, OnnxNodeText(inner_op, {"in"}, {"t"}).Reference("alpha", "slope", 1).bytes());
  function.add_message(7, OnnxNodeText("Add", {"in", "t"}, {"out"}).bytes());
  {
    protozero::pbf_writer import(function, 9);
    import.add_int64(2, 17);
  }
  function.add_string(10, "own");
  return bytes;
}

TEST_F(OnnxImport, UnfoldsTheModelsOwnFunctions) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Scaled", {"x"}, {"m"}, "call").Domain("own").Float("slope", 0.5f));
  graph.Node(OnnxNodeText("Scaled", {"m"}, {"y"}, "again").Domain("own"));
  Open(OnnxModelText(graph, 17, {ScaledFunction()}));
  // -1 -> -1.5 with the slope 0.5, then -1.515 with LeakyRelu's own default.
  const auto y = Run();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_NEAR((*y)[0], -1.515, 1e-6);
  EXPECT_EQ((*y)[1], 8);
  const auto module = Import();
  EXPECT_EQ(module->main.nodes()[0].name, "call/t");

  Open(OnnxModelText(graph, 17, {ScaledFunction("Wobble")}));
  EXPECT_SAYS(Refusal(), "'Wobble' (opset 17) in 1 node: 'call/t'");
}

TEST_F(OnnxImport, FunctionsThatCallThemselvesEnd) {
  std::string bytes;
  protozero::pbf_writer function(bytes);
  function.add_string(1, "Loop");
  function.add_string(4, "in");
  function.add_string(5, "out");
  function.add_message(7, OnnxNodeText("Loop", {"in"}, {"t"}).Domain("own").bytes());
  function.add_message(7, OnnxNodeText("Loop", {"t"}, {"out"}).Domain("own").bytes());
  {
    protozero::pbf_writer import(function, 9);
    import.add_string(1, "own");
    import.add_int64(2, 1);
  }
  function.add_string(10, "own");
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Loop", {"x"}, {"y"}).Domain("own"));
  Open(OnnxModelText(graph, 17, {bytes}));
  EXPECT_SAYS(Refusal(), "functions call each other too deeply");
}

// With two constants of one name, choosing either would be a guess.
TEST_F(OnnxImport, RefusesTwoConstantsOfOneName) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Floats("k", {1}, {1}).Floats("k", {1}, {2}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Add", {"x", "k"}, {"y"}));
  Open(OnnxModelText(graph));
  EXPECT_SAYS(Refusal(), "two initializers are named 'k'");
}

TEST_F(OnnxImport, SparseConstantsAreMadeDense) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3}).Sparse("k", {1, 3}, {7, 5}, {2, 2}, {0, 2, 0, 0});
  graph.Node(OnnxNodeText("Add", {"x", "k"}, {"y"}));
  Open(OnnxModelText(graph));
  EXPECT_EQ(*Run(), (std::vector<double>{4, 2, 10}));
}

// Sizes and indices come from the file and must be checked.
TEST_F(OnnxImport, RefusesSparseConstantsThatDoNotFit) {
  using Ints = std::vector<int64_t>;
  struct Case {
    Ints shape, places_shape, places;
    const char* says;
  };
  const Case cases[] = {
      {{2, 3}, {2}, {0, 6}, "has a value at 6 of an axis of 6"},
      {{2, 3}, {2}, {-1, 0}, "has a value at -1"},
      {{2, 3}, {2, 2}, {0, 0, 0, 3}, "has a value at 3 of an axis of 3"},
      {{0, 3}, {2}, {0, 0}, "of an axis of 0"},
      {{2, 3}, {2}, {4, 4}, "two values at element 4"},
      {{2, 3}, {2, 2}, {1, 1, 1, 1}, "two values at element 4"},
      {{}, {2, 0}, {}, "two values at element 0"},
      {{2, 3}, {1}, {0}, "has the indices i64[1]"},
      {{2, 3}, {2, 3}, {0, 0, 0, 1, 1, 1}, "has the indices i64[2,3]"},
      {{int64_t{1} << 20, int64_t{1} << 20}, {2}, {0, 1}, "of which 8 are stored"},
      {{int64_t{1} << 40, int64_t{1} << 40}, {2}, {0, 1}, "impossible shape"},
      {{-2, 3}, {2}, {0, 1}, "negative size"},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, {2}, {0, 1}, "rank 13"},
  };
  for (const Case& c : cases) {
    OnnxGraphText graph;
    graph.Input("x", {1, 3}).Output("y", {}).Sparse("k", c.shape, {1, 2}, c.places_shape, c.places);
    graph.Node(OnnxNodeText("Add", {"x", "k"}, {"y"}));
    Open(OnnxModelText(graph));
    EXPECT_SAYS(Refusal(), c.says);
    EXPECT_SAYS(Refusal(), "initializer 'k'");
  }
}

TEST_F(OnnxImport, OutputsHaveTheTypeThatIsDeclared) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3}, 7);
  graph.Node(OnnxNodeText("Neg", {"x"}, {"y"}));
  Open(OnnxModelText(graph));
  EXPECT_SAYS(Refusal(), "output 'y' is declared INT64 and computed as f32");
}

// An unknown version may have changed the meaning of a file without notice.
TEST_F(OnnxImport, RefusesVersionsOfTheFormatThatAreNotKnown) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {1, 3});
  graph.Node(OnnxNodeText("Neg", {"x"}, {"y"}));
  std::string bytes = OnnxModelText(graph);
  ASSERT_EQ(bytes[0], '\x08');  // the version stands first
  for (const char version : {14, 15}) {
    bytes[1] = version;
    const auto model = OpenModel(folder_.Write("model.onnx", bytes), {});
    EXPECT_EQ(model.ok(), version == 14) << model.status();
    if (model.ok()) continue;
    EXPECT_SAYS(Message(model.status()), "IR version 15");
  }
}

// Absent bounds are the last finite floats before opset 11, and none later.
TEST_F(OnnxImport, ClipsInfinitiesWhereTheDefaultsAreFinite) {
  const float x[] = {-INFINITY, 2, INFINITY};
  for (const int64_t opset : {6, 10, 11, 13}) {
    OnnxGraphText graph;
    graph.Input("x", {1, 3}).Output("y", {1, 3});
    graph.Node(OnnxNodeText("Clip", {"x"}, {"y"}));
    Open(OnnxModelText(graph, opset));
    const auto module = Import();
    ASSERT_TRUE(module.ok()) << module.status();
    const auto out = RunGraph(module->main, {{"x", Tensor::Of<float>(DType::kF32, {1, 3}, x)}});
    ASSERT_TRUE(out.ok()) << out.status();
    const double last = opset < 11 ? double{std::numeric_limits<float>::max()} : INFINITY;
    EXPECT_EQ(*ToDoubles((*out)[0]), (std::vector<double>{-last, 2, last})) << opset;
  }
}

class OnnxExternal : public OnnxImport {
 protected:
  // A model whose weight of [3] floats is external with these entries, added to x.
  void OpenWith(const std::vector<std::pair<std::string, std::string>>& entries) {
    OnnxGraphText graph;
    graph.Input("x", {1, 3}).Output("y", {1, 3});
    graph.External("w", {3}, entries);
    graph.Node(OnnxNodeText("Add", {"x", "w"}, {"y"}));
    Open(OnnxModelText(graph));
  }
  static std::string Floats(std::vector<float> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
};

TEST_F(OnnxExternal, TensorsAreViewsIntoTheFileBeside) {
  folder_.Write("w.bin", "1234" + Floats({10, 20, 30}));
  OpenWith({{"location", "w.bin"}, {"offset", "4"}, {"length", "12"}});
  EXPECT_EQ(*Run(), (std::vector<double>{9, 22, 33}));
  const auto module = Import();
  bool mapped = false;
  for (const Value& value : module->main.values()) mapped |= value.fact.value.mapped();
  EXPECT_TRUE(mapped);
  // In a folder below, to the end of the file, and with a checksum, which is not used.
  mkdir(folder_.File("sub").c_str(), 0700);
  folder_.Write("sub/w.bin", Floats({1, 1, 1}));
  OpenWith({{"location", "./sub/w.bin"}, {"checksum", "00"}});
  EXPECT_EQ(*Run(), (std::vector<double>{0, 3, 4}));
}

// A file that takes the name between loading and the first run belongs to another model.
TEST_F(OnnxExternal, FilesAreOpenedWithTheModel) {
  folder_.Write("w.bin", Floats({10, 20, 30}));
  OpenWith({{"location", "w.bin"}});
  folder_.Write("new.bin", Floats({1, 1, 1}));
  ASSERT_EQ(rename(folder_.File("new.bin").c_str(), folder_.File("w.bin").c_str()), 0);
  EXPECT_EQ(*Run(), (std::vector<double>{9, 22, 33}));
}

TEST_F(OnnxExternal, NothingOutsideTheFolderIsOpened) {
  const TemporaryFolder outside;
  outside.Write("secret", Floats({1, 2, 3}));
  folder_.Write("w.bin", Floats({1, 2, 3}));
  mkdir(folder_.File("sub").c_str(), 0700);
  const std::string name = outside.path().substr(outside.path().rfind('/') + 1);
  for (const std::string& location :
       {outside.File("secret"), "../" + name + "/secret", "sub/../../" + name + "/secret",
        std::string("sub/../w.bin"), std::string("/etc/passwd"), std::string("sub"),
        std::string("."), std::string("w.bin/"), std::string("w.bin\0x", 7)}) {
    OpenWith({{"location", location}});
    const auto module = Import();
    EXPECT_FALSE(module.ok()) << location;
    EXPECT_EQ(Details(module.status()).stage, Stage::kFile) << module.status();
  }
  OpenWith({{"location", "../" + name + "/secret"}});
  EXPECT_SAYS(Refusal(), "it lies outside the folder");
}

TEST_F(OnnxExternal, LinksAndSpecialFilesAreRefused) {
  const TemporaryFolder outside;
  const std::string secret = outside.Write("secret", Floats({1, 2, 3}));
  ASSERT_EQ(symlink(secret.c_str(), folder_.File("link").c_str()), 0);
  ASSERT_EQ(symlink(outside.path().c_str(), folder_.File("folder").c_str()), 0);
  ASSERT_EQ(link(secret.c_str(), folder_.File("hard").c_str()), 0);
  ASSERT_EQ(mkfifo(folder_.File("pipe").c_str(), 0600), 0);
  const std::pair<const char*, const char*> kinds[] = {{"link", "a symbolic link is on its way"},
                                                       {"folder/secret", "a symbolic link"},
                                                       {"hard", "it is a hard link"},
                                                       {"pipe", "it is a pipe"},
                                                       {"missing", "No such file"}};
  for (const auto& [location, reason] : kinds) {
    OpenWith({{"location", location}});
    EXPECT_SAYS(Refusal(), reason);
  }
}

TEST_F(OnnxExternal, OffsetsLengthsAndKeysAreChecked) {
  folder_.Write("w.bin", Floats({1, 2, 3, 4}));
  using Entries = std::vector<std::pair<std::string, std::string>>;
  const std::pair<Entries, const char*> kinds[] = {
      {{{"offset", "8"}}, "external data at 8 of 12 bytes"},
      {{{"offset", "9223372036854775807"}}, "external data at 9223372036854775807"},
      {{{"offset", "-4"}}, "with the offset '-4'"},
      {{{"offset", "99999999999999999999"}}, "with the offset"},
      {{{"offset", "1x"}}, "with the offset '1x'"},
      {{{"length", "8"}}, "external data of 8 bytes for f32[3]"},
      {{{"length", "-1"}}, "with the length '-1'"},
      {{{"basepath", "/"}}, "with the key 'basepath'"}};
  for (const auto& [entries, reason] : kinds) {
    Entries all = {{"location", "w.bin"}};
    all.insert(all.end(), entries.begin(), entries.end());
    OpenWith(all);
    EXPECT_SAYS(Refusal(), reason);
  }
  OpenWith({});
  EXPECT_SAYS(Refusal(), "without a location");
}

}  // namespace
}  // namespace oncilla
