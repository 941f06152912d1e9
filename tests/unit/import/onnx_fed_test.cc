// ONNX graphs that are made for what a run feeds, since the file leaves ranks or sizes open, and
// what of them is refused only when the sizes are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class OnnxFed : public ::testing::Test {
 protected:
  void SetUp() override {
    auto session = Session::Create(Runtime::Create({}), {.device = "cpu", .verify = true});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
  }
  void Load(const OnnxGraphText& graph, int64_t opset = 17) {
    auto model = session_->Load(folder_.Write("model.onnx", OnnxModelText(graph, opset)), {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  static Tensor Ones(Shape shape) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 1.0f);
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  // The shape of the first output and its first element, or the failure.
  std::string Run(std::vector<NamedTensor> feeds) {
    RunRequest request;
    request.feeds = std::move(feeds);
    const auto result = model_->Run(request);
    if (!result.ok()) return StrCat(result.status());
    const Tensor& y = result->outputs[0].second;
    return StrCat(y.shape(), " ", y.elements() == 0 ? 0.0 : (*ToDoubles(y))[0]);
  }
  int64_t graphs() const { return model_->executables().counters().graphs_compiled; }

  TemporaryFolder folder_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> model_;
};

// A convolution of tensors whose ranks the file does not state.
TEST_F(OnnxFed, RanksAreThoseOfTheFeeds) {
  OnnxGraphText graph;
  graph.Unranked("x").Unranked("w").UnrankedOutput("y");
  graph.Node(OnnxNodeText("Conv", {"x", "w"}, {"y"}).Ints("pads", {1, 1, 1, 1}));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 4})}, {"w", Ones({3, 2, 3, 3})}}), "[1,3,4,4] 8");
  // Another size of the same ranks needs no other graph, unless sizes decided.
  const int64_t made = graphs();
  EXPECT_EQ(Run({{"x", Ones({1, 2, 5, 5})}, {"w", Ones({3, 2, 3, 3})}}), "[1,3,5,5] 8");
  EXPECT_LE(graphs(), made + 1);
}

TEST_F(OnnxFed, SizesThatAnOpNeedsAreThoseOfTheFeeds) {
  OnnxGraphText graph;
  graph.Input("q", {"n", "s", "e"}).Output("y", {"n", "s", "f"});
  graph.Node(OnnxNodeText("Einsum", {"q"}, {"y"}).String("equation", "iij->ij"));
  Load(graph);
  EXPECT_EQ(Run({{"q", Ones({3, 3, 2})}}), "[3,2] 1");
  EXPECT_THAT(Run({{"q", Ones({3, 2, 2})}}), HasSubstr("Einsum"));
}

// C may stretch to the product, never the product to C.
TEST_F(OnnxFed, TheProductOfGemmIsNotEnlarged) {
  OnnxGraphText graph;
  graph.Input("x", {"n", 2}).Output("y", {"n", 3});
  graph.Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).Floats("c", {2, 3}, {1, 2, 3, 4, 5, 6});
  graph.Node(OnnxNodeText("Gemm", {"x", "w", "c"}, {"y"}, "gemm"));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({2, 2})}}), "[2,3] 6");
  const std::string refused = Run({{"x", Ones({1, 2})}});
  EXPECT_THAT(refused, HasSubstr("gemm"));
  EXPECT_THAT(refused, HasSubstr("[1,3]"));

  OnnxGraphText fed;
  fed.Input("x", {"n", 2}).Input("c", {"m", 3}).Output("y", {"n", 3});
  fed.Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  fed.Node(OnnxNodeText("Gemm", {"x", "w", "c"}, {"y"}, "gemm"));
  Load(fed);
  EXPECT_EQ(Run({{"x", Ones({4, 2})}, {"c", Ones({1, 3})}}), "[4,3] 6");
  EXPECT_EQ(Run({{"x", Ones({4, 2})}, {"c", Ones({4, 3})}}), "[4,3] 6");
  EXPECT_THAT(Run({{"x", Ones({1, 2})}, {"c", Ones({4, 3})}}), HasSubstr("[1,3]"));
}

// A parameter of one element is not one for all channels.
TEST_F(OnnxFed, ParametersOfBatchNormAreOnePerChannel) {
  OnnxGraphText graph;
  graph.Input("x", {"n", "c", 2}).Output("y", {"n", "c", 2});
  graph.Floats("s", {1}, {2}).Floats("b", {1}, {5}).Floats("m", {1}, {1}).Floats("v", {1}, {1});
  graph.Node(OnnxNodeText("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, "norm"));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({2, 1, 2})}}), "[2,1,2] 5");
  const std::string refused = Run({{"x", Ones({2, 3, 2})}});
  EXPECT_THAT(refused, HasSubstr("norm"));
  EXPECT_THAT(refused, HasSubstr("scale has 1 elements for 3 channels"));
}

// Before opset 18 parts without sizes are equal.
TEST_F(OnnxFed, PartsWithoutSizesAreEqual) {
  for (const char* size : {"", "n"}) {
    OnnxGraphText graph;
    const OnnxDimText rows = *size == 0 ? OnnxDimText(5) : OnnxDimText(size);
    graph.Input("x", {rows, 2}).Output("a", {"k", 2}).Output("b", {"l", 2});
    graph.Node(OnnxNodeText("Split", {"x"}, {"a", "b"}, "parts"));
    Load(graph, 13);
    EXPECT_THAT(Run({{"x", Ones({5, 2})}}), HasSubstr("parts")) << size;
    if (*size != 0) {
      EXPECT_EQ(Run({{"x", Ones({6, 2})}}), "[3,2] 1");
    }
  }
  OnnxGraphText graph;
  graph.Input("x", {"n", 2}).Output("a", {"k", 2}).Output("b", {"l", 2});
  graph.Node(OnnxNodeText("Split", {"x"}, {"a", "b"}, "parts").Int("num_outputs", 2));
  Load(graph, 18);
  EXPECT_EQ(Run({{"x", Ones({5, 2})}}), "[3,2] 1");
}

}  // namespace
}  // namespace oncilla
