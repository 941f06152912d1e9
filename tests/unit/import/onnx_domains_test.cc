// ONNX ops by domain and version: which versions each row supports, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/import/model_source.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr char kMl[] = "ai.onnx.ml";
constexpr char kMicrosoft[] = "com.microsoft";

class OnnxDomains : public ::testing::Test {
 protected:
  // A model of one node from x [1, 3] (and z of the same shape) to y.
  Result<Module> Import(const OnnxNodeText& node, int64_t opset = 21,
                        const std::vector<std::pair<std::string, int64_t>>& domains = {},
                        int type = 1) {
    OnnxGraphText graph;
    graph.Input("x", {1, 3}).Input("z", {1, 3}).Output("y", {}, type);
    graph.Node(node);
    return ImportGraph(graph, opset, domains);
  }
  Result<Module> ImportGraph(const OnnxGraphText& graph, int64_t opset,
                             const std::vector<std::pair<std::string, int64_t>>& domains) {
    ONCILLA_ASSIGN(
        const auto model,
        OpenModel(folder_.Write("model.onnx", OnnxModelText(graph, opset, {}, domains)), {}));
    return model->Import({}, OpSet::Builtin());
  }
  std::string Refusal(const OnnxNodeText& node, int64_t opset = 21,
                      const std::vector<std::pair<std::string, int64_t>>& domains = {}) {
    const auto module = Import(node, opset, domains);
    EXPECT_FALSE(module.ok());
    return Message(module.status());
  }
  // y for x = {-1, 2, 3.5} and z = {2, -2, 3}.
  static std::vector<double> Run(const Result<Module>& module) {
    EXPECT_TRUE(module.ok()) << module.status();
    if (!module.ok()) return {};
    const float x[] = {-1, 2, 3.5f}, z[] = {2, -2, 3};
    const auto out = RunGraph(module->main, {{"x", Tensor::Of<float>(DType::kF32, {1, 3}, x)},
                                             {"z", Tensor::Of<float>(DType::kF32, {1, 3}, z)}});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *ToDoubles((*out)[0]) : std::vector<double>();
  }
  TemporaryFolder folder_;
};

TEST_F(OnnxDomains, RefusesAnOpOfADomainThatHasNone) {
  EXPECT_SAYS(
      Refusal(OnnxNodeText("Sigmoid", {"x"}, {"y"}, "n").Domain(kMicrosoft), 21, {{kMicrosoft, 1}}),
      "com.microsoft.Sigmoid");
  EXPECT_SAYS(Refusal(OnnxNodeText("QuickGelu", {"x"}, {"y"}, "n"), 21, {{kMicrosoft, 1}}),
              "QuickGelu");
  EXPECT_SAYS(Refusal(OnnxNodeText("QuickGelu", {"x"}, {"y"}, "n").Domain(kMicrosoft), 21, {}),
              "the model imports no opset for it");
}

TEST_F(OnnxDomains, KnowsTheVersionsOfEachDomain) {
  OnnxNodeText tree("TreeEnsembleRegressor", {"x"}, {"y"}, "n");
  tree.Domain(kMl);
  EXPECT_SAYS(Refusal(tree, 21, {{kMl, 5}}), "versions up to 4 are");
  OnnxNodeText label("LabelEncoder", {"x"}, {"y"}, "n");
  label.Domain(kMl);
  EXPECT_SAYS(Refusal(label, 21, {{kMl, 1}}), "the list of classes is missing");
  EXPECT_SAYS(Refusal(OnnxNodeText("Swish", {"x"}, {"y"}, "n"), 23), "versions from 24 are");
  EXPECT_SAYS(Refusal(OnnxNodeText("Relu", {"x"}, {"y"}, "n"), 29), "versions up to 28 are");
}

TEST_F(OnnxDomains, TakesFloatsModuloByFloorFromOpset28) {
  const OnnxNodeText mod("Mod", {"x", "z"}, {"y"}, "n");
  EXPECT_SAYS(Refusal(mod, 27), "fmod");
  EXPECT_EQ(Run(Import(mod, 28)), (std::vector<double>{1, 0, 0.5}));
}

TEST_F(OnnxDomains, GatesWithSwish) {
  const auto y = Run(Import(OnnxNodeText("SwiGLU", {"x", "z"}, {"y"}).Float("alpha", 2), 28));
  ASSERT_EQ(y.size(), 3u);
  EXPECT_NEAR(y[0], -1 / (1 + std::exp(2.0)) * 2, 1e-6);
  EXPECT_NEAR(y[1], 2 / (1 + std::exp(-4.0)) * -2, 1e-6);
}

TEST_F(OnnxDomains, BinarizesAndLooksUpFloats) {
  OnnxNodeText above("Binarizer", {"x"}, {"y"}, "n");
  above.Domain(kMl).Float("threshold", 2);
  EXPECT_EQ(Run(Import(above, 21, {{kMl, 1}})), (std::vector<double>{0, 0, 1}));
  OnnxNodeText label("LabelEncoder", {"x"}, {"y"}, "n");
  label.Domain(kMl)
      .Floats("keys_floats", {2, -1, 2})
      .Ints("values_int64s", {5, 6, 7})
      .Int("default_int64", -4);
  EXPECT_EQ(Run(Import(label, 21, {{kMl, 2}}, 7)), (std::vector<double>{6, 7, -4}));
}

TEST_F(OnnxDomains, EncodesCategoriesAndFailsAtOthers) {
  const auto encoder = [](const std::vector<int64_t>& categories) {
    OnnxNodeText node("OneHotEncoder", {"x"}, {"y"}, "n");
    node.Domain(kMl).Ints("cats_int64s", categories).Int("zeros", 0);
    return node;
  };
  EXPECT_EQ(Run(Import(encoder({3, 2, -1}), 21, {{kMl, 1}})),
            (std::vector<double>{0, 0, 1, 0, 1, 0, 1, 0, 0}));
  const auto module = Import(encoder({3, 2}), 21, {{kMl, 1}});
  ASSERT_TRUE(module.ok()) << module.status();
  const float x[] = {-1, 2, 3};
  const auto out = RunGraph(module->main, {{"x", Tensor::Of<float>(DType::kF32, {1, 3}, x)},
                                           {"z", Tensor::Of<float>(DType::kF32, {1, 3}, x)}});
  ASSERT_FALSE(out.ok());
  EXPECT_SAYS(Message(out.status()), "not one of the categories");
}

TEST_F(OnnxDomains, TellsMapsAsTensors) {
  OnnxNodeText zip("ZipMap", {"x"}, {"y"}, "n");
  zip.Domain(kMl).Strings("classlabels_strings", {"a", "b", "c"});
  OnnxGraphText graph;
  graph.Input("x", {1, 3}).Output("y", {}).Node(zip);
  const auto module = ImportGraph(graph, 21, {{kMl, 1}});
  ASSERT_TRUE(module.ok()) << module.status();
  const auto& outputs = module->main.outputs();
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[1].name, "y.labels");
  EXPECT_EQ(module->main.fact(outputs[1].value).value.strings(),
            (std::vector<std::string>{"a", "b", "c"}));
  OnnxNodeText few("ZipMap", {"x"}, {"y"}, "n");
  few.Domain(kMl).Strings("classlabels_strings", {"a", "b"});
  EXPECT_SAYS(Refusal(few, 21, {{kMl, 1}}), "n");
  OnnxNodeText words("DictVectorizer", {"x"}, {"y"}, "n");
  words.Domain(kMl).Strings("string_vocabulary", {"a"});
  EXPECT_SAYS(Refusal(words, 21, {{kMl, 1}}), "of a map that is not an input of the model");
}

TEST_F(OnnxDomains, RefusesQuantisedPoolsThatCountBeyondThePadding) {
  OnnxNodeText pool("QLinearAveragePool", {"x", "z", "", "z"}, {"y"}, "n");
  pool.Domain(kMicrosoft).Ints("kernel_shape", {2}).Int("ceil_mode", 1).Int("count_include_pad", 1);
  OnnxGraphText graph;
  graph.Input("x", {1, 1, 3}).Input("z", {}).Output("y", {}).Node(pool);
  const auto module = ImportGraph(graph, 21, {{kMicrosoft, 1}});
  ASSERT_FALSE(module.ok());
  EXPECT_SAYS(Message(module.status()), "ceil_mode and count_include_pad");
}

TEST_F(OnnxDomains, SaysThatModelsForOneProcessorAreNoExchangeFormat) {
  OnnxNodeText conv("Conv", {"x", "z"}, {"y"}, "n");
  conv.Domain("com.microsoft.nchwc");
  EXPECT_SAYS(Refusal(conv, 21, {{"com.microsoft.nchwc", 1}}), "made for one processor");
}

// Nodes of a tree by number; `yes` of node 1 is a parameter.
class Tree : public OnnxNodeText {
 public:
  explicit Tree(int64_t yes) : OnnxNodeText("TreeEnsembleRegressor", {"x"}, {"y"}, "n") {
    Domain(kMl)
        .Ints("nodes_treeids", {0, 0, 0, 0, 0})
        .Ints("nodes_nodeids", {0, 1, 2, 3, 4})
        .Ints("nodes_featureids", {0, 1, 0, 0, 0})
        .Strings("nodes_modes", {"BRANCH_LT", "BRANCH_GTE", "LEAF", "LEAF", "LEAF"})
        .Floats("nodes_values", {0, 2, 0, 0, 0})
        .Ints("nodes_truenodeids", {1, yes, 0, 0, 0})
        .Ints("nodes_falsenodeids", {4, 3, 0, 0, 0})
        .Ints("target_treeids", {0, 0, 0})
        .Ints("target_nodeids", {2, 3, 4})
        .Ints("target_ids", {0, 0, 0})
        .Floats("target_weights", {10, 20, 30});
  }
};

TEST_F(OnnxDomains, WalksTreesAndRefusesWhatIsNone) {
  EXPECT_EQ(Run(Import(Tree(2), 21, {{kMl, 3}})), (std::vector<double>{10}));
  EXPECT_SAYS(Refusal(Tree(0), 21, {{kMl, 3}}), "tree node 0 belongs to a cycle");
  EXPECT_SAYS(Refusal(Tree(9), 21, {{kMl, 3}}), "leads to a node 9 that it lacks");
}

// The meaning of a single score for two classes is known only for the forms that converters write.
TEST_F(OnnxDomains, RefusesOneScoreForTwoClassesInFormsThatNobodyWrites) {
  const auto node = [](int64_t voted) {
    OnnxNodeText tree("TreeEnsembleClassifier", {"x"}, {"l", "y"}, "n");
    tree.Domain(kMl)
        .Ints("nodes_treeids", {0, 0, 0})
        .Ints("nodes_nodeids", {0, 1, 2})
        .Ints("nodes_featureids", {0, 0, 0})
        .Strings("nodes_modes", {"BRANCH_LT", "LEAF", "LEAF"})
        .Floats("nodes_values", {0, 0, 0})
        .Ints("nodes_truenodeids", {1, 0, 0})
        .Ints("nodes_falsenodeids", {2, 0, 0})
        .Ints("class_treeids", {0, 0})
        .Ints("class_nodeids", {1, 2})
        .Ints("class_ids", {voted, voted})
        .Floats("class_weights", {0.25, 0.75})
        .Ints("classlabels_int64s", {3, 4});
    return tree;
  };
  EXPECT_EQ(Run(Import(node(0), 21, {{kMl, 3}})), (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(Run(Import(node(1), 21, {{kMl, 3}})), (std::vector<double>{0, 0.25}));
  EXPECT_SAYS(Refusal(node(0).String("post_transform", "PROBIT"), 21, {{kMl, 3}}),
              "post_transform PROBIT");
  EXPECT_SAYS(Refusal(node(0).String("post_transform", "MOST"), 21, {{kMl, 3}}), "'MOST'");
  EXPECT_SAYS(Refusal(node(0).Floats("base_values", {1, 2, 3}), 21, {{kMl, 3}}), "3 base values");
  EXPECT_SAYS(Refusal(node(1).Floats("base_values", {1, 2}), 21, {{kMl, 3}}),
              "base values of both");
  OnnxNodeText linear("LinearClassifier", {"x"}, {"l", "y"}, "n");
  linear.Domain(kMl)
      .Floats("coefficients", {1, 2, 3})
      .Floats("intercepts", {0})
      .Ints("classlabels_ints", {3, 4})
      .String("post_transform", "PROBIT");
  EXPECT_SAYS(Refusal(linear, 21, {{kMl, 1}}), "post_transform PROBIT of one score");
}

TEST_F(OnnxDomains, RefusesAttentionThatCannotBe) {
  const auto refusal = [&](const OnnxNodeText& node, int64_t opset) {
    OnnxGraphText graph;
    for (const char* name : {"q", "k", "v"}) graph.Input(name, {1, 2, 4, 8});
    graph.Input("n", {1}, 7).Output("y", {});
    graph.Node(node);
    const auto module = ImportGraph(graph, opset, {});
    EXPECT_FALSE(module.ok());
    return Message(module.status());
  };
  EXPECT_SAYS(
      refusal(OnnxNodeText("Attention", {"q", "k", "v"}, {"y"}).Int("left_window_size", -2), 25),
      "a window of -2");
  EXPECT_SAYS(
      refusal(OnnxNodeText("Attention", {"q", "k", "v"}, {"y"}).Int("left_window_size", 1), 24),
      "left_window_size");
  EXPECT_SAYS(refusal(OnnxNodeText("Attention", {"q", "k", "v", "", "k", "v", "n"}, {"y"}), 24),
              "does not go together with past_key");
}

TEST_F(OnnxDomains, RefusesPoolsAndLoopsOfMicrosoftThatCannotBe) {
  const auto refusal = [&](const OnnxNodeText& node) {
    OnnxGraphText graph;
    graph.Input("x", {1, 2, 4, 4}).Input("mask", {1, 1, 4, 4}, 6).Input("small", {1, 1, 4, 3}, 6);
    graph.Input("t", {2, 3, 4}).Input("w", {1, 8, 5}).Input("r", {1, 8, 2}).Input("v", {1, 5});
    graph.Input("b", {40}, 2).Output("y", {});
    graph.Node(node);
    const auto module = ImportGraph(graph, 21, {{kMicrosoft, 1}});
    EXPECT_FALSE(module.ok());
    return Message(module.status());
  };
  const auto pool = [](const char* mask, const std::vector<int64_t>& kernel) {
    OnnxNodeText node("MaxpoolWithMask", {"x", mask}, {"y"}, "n");
    node.Domain(kMicrosoft).Ints("kernel_shape", kernel);
    return node;
  };
  EXPECT_SAYS(refusal(pool("small", {2, 2})), "the mask is [1,1,4,3], the input [1,2,4,4]");
  EXPECT_SAYS(refusal(pool("mask", {2, -2})), "kernel_shape holds -2");
  EXPECT_SAYS(refusal(pool("mask", {int64_t{1} << 40, int64_t{1} << 40})), "with windows of");
  EXPECT_SAYS(refusal(pool("mask", {2, 2}).Ints("pads", {2, 0, 0, 0})), "pads holds 2");
  EXPECT_SAYS(
      refusal(pool("mask", {1, 1}).Ints("strides", {3, 1}).String("auto_pad", "SAME_UPPER")),
      "a stride of 3 and a window of 1");
  const auto lstm = [](const std::vector<std::string>& inputs) {
    OnnxNodeText node("AttnLSTM", inputs, {"y"}, "n");
    node.Domain(kMicrosoft);
    return node;
  };
  EXPECT_SAYS(refusal(lstm({"t", "w"})), "input 2 is missing");
  EXPECT_SAYS(refusal(lstm({"t", "w", "r", "", "", "", "", "", "w", "w", "v"})),
              "input 11 is missing");
  EXPECT_SAYS(refusal(lstm({"t", "w", "r", "", "", "", "", "", "w", "w", "v", "x"})),
              "input 11 has the rank 4, not 3");
  EXPECT_SAYS(refusal(lstm({"t", "w", "r", "", "", "", "", "", "w", "r", "v", "t"})), "along axis");
  const auto product = [] {
    OnnxNodeText node("MatMulFpQ4", {"t", "b", "b"}, {"y"}, "n");
    node.Domain(kMicrosoft);
    return node;
  };
  EXPECT_SAYS(refusal(product()), "the matrix's shape");
  EXPECT_SAYS(refusal(product().Int("blk_quant_type", 2)), "with blk_quant_type 2");
}

}  // namespace
}  // namespace oncilla
