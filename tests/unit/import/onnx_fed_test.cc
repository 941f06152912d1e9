// ONNX graphs that are built for the feeds of a run, since the file leaves ranks or sizes open, and
// errors that are found only when the sizes are known.
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
  // Another size of the same rank must not need another graph, unless sizes determined it.
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

// The axis is known to be empty only from the feeds; an empty axis has no maximum.
TEST_F(OnnxFed, HardmaxOfAnEmptyAxisIsEmpty) {
  OnnxGraphText graph;
  graph.Input("x", {"n", "m"}).Output("y", {"n", "m"});
  graph.Node(OnnxNodeText("Hardmax", {"x"}, {"y"}));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({2, 0})}}), "[2,0] 0");
  EXPECT_EQ(Run({{"x", Ones({0, 3})}}), "[0,3] 0");
  EXPECT_EQ(Run({{"x", Ones({2, 3})}}), "[2,3] 1");
}

// Letters of size one are broadcast, whether the file states the size or the feeds do.
TEST_F(OnnxFed, SizesOfOneStretchInEinsum) {
  OnnxGraphText graph;
  graph.Input("x", {"a", "b"}).Input("z", {"c", "d"}).Output("y", {"e", "f"});
  graph.Node(OnnxNodeText("Einsum", {"x", "z"}, {"y"}, "sum").String("equation", "ab,bc->ac"));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({2, 3})}, {"z", Ones({3, 4})}}), "[2,4] 3");
  EXPECT_EQ(graphs(), 1);
  EXPECT_EQ(Run({{"x", Ones({2, 1})}, {"z", Ones({3, 4})}}), "[2,4] 3");
  EXPECT_EQ(Run({{"x", Ones({2, 3})}, {"z", Ones({1, 4})}}), "[2,4] 3");
  EXPECT_THAT(Run({{"x", Ones({2, 3})}, {"z", Ones({2, 4})}}), HasSubstr("inner sizes differ"));
}

// Before opset 11 the selected pixel depends on whether an axis grows.
TEST_F(OnnxFed, ScalesAreThoseOfTheFeeds) {
  OnnxGraphText graph;
  graph.Input("x", {1, 2, 4, 2}).Input("s", {4}).Output("y", {"a", "b", "c", "d"});
  graph.Node(OnnxNodeText("Resize", {"x", "s"}, {"y"}));
  Load(graph, 10);
  const auto scales = [](std::vector<float> s) {
    return Tensor::Of<float>(DType::kF32, {4}, std::move(s));
  };
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({1, 2, 2, 1})}}), "[1,4,8,2] 1");
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({1, 1, 0.5f, 0.5f})}}), "[1,2,2,1] 1");

  // Later ones are taken for those of the axes behind batch and channels, unless they are not.
  OnnxGraphText later;
  later.Input("x", {1, 2, 4, 2}).Input("s", {4}).Output("y", {"a", "b", "c", "d"});
  later.Node(OnnxNodeText("Resize", {"x", "", "s"}, {"y"}));
  Load(later, 13);
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({1, 1, 2, 3})}}), "[1,2,8,6] 1");
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({1, 1, 3, 1})}}), "[1,2,12,2] 1");
  EXPECT_EQ(graphs(), 1);
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({1, 2, 2, 1})}}), "[1,4,8,2] 1");
  EXPECT_EQ(Run({{"x", Ones({1, 2, 4, 2})}, {"s", scales({2, 1, 1, 1})}}), "[2,2,4,2] 1");
}

// As detectors write it: batch and channels from the image's own shape, the rest from another's.
TEST_F(OnnxFed, SizesOfOneTensorResizeAnother) {
  OnnxGraphText graph;
  graph.Input("x", {1, 3, "h", "w"}).Input("like", {1, 3, "p", "q"}).Output("y", {1, 3, "r", "s"});
  graph.Ints("zero", {1}, {0}).Ints("two", {1}, {2}).Ints("four", {1}, {4});
  graph.Node(OnnxNodeText("Shape", {"x"}, {"own"}));
  graph.Node(OnnxNodeText("Shape", {"like"}, {"other"}));
  graph.Node(OnnxNodeText("Slice", {"own", "zero", "two"}, {"kept"}));
  graph.Node(OnnxNodeText("Slice", {"other", "two", "four"}, {"asked"}));
  graph.Node(OnnxNodeText("Concat", {"kept", "asked"}, {"sizes"}).Int("axis", 0));
  graph.Node(OnnxNodeText("Resize", {"x", "", "", "sizes"}, {"y"}));
  Load(graph);
  EXPECT_EQ(Run({{"x", Ones({1, 3, 2, 4})}, {"like", Ones({1, 3, 5, 7})}}), "[1,3,5,7] 1");
  EXPECT_EQ(Run({{"x", Ones({1, 3, 9, 4})}, {"like", Ones({1, 3, 2, 8})}}), "[1,3,2,8] 1");
  EXPECT_EQ(graphs(), 1);
}

// Any three axes of unknown sizes, and some axes of which the model names the sizes.
TEST_F(OnnxFed, ComputedSizesOfOtherAxes) {
  OnnxGraphText all;
  all.Input("x", {1, "c", "h", "w"}).Input("i", {"a"}).Output("y", {"n", "k", "p", "q"});
  all.Ints("one", {1}, {1});
  all.Node(OnnxNodeText("Shape", {"i"}, {"length"}));
  all.Node(OnnxNodeText("Concat", {"one", "length", "length", "length"}, {"s"}).Int("axis", 0));
  all.Node(OnnxNodeText("Resize", {"x", "", "", "s"}, {"y"}));
  Load(all);
  EXPECT_EQ(Run({{"x", Ones({1, 2, 3, 4})}, {"i", Ones({6})}}), "[1,6,6,6] 1");
  EXPECT_EQ(Run({{"x", Ones({1, 5, 1, 2})}, {"i", Ones({2})}}), "[1,2,2,2] 1");
  EXPECT_EQ(graphs(), 1);

  OnnxGraphText some;
  some.Input("x", {"n", 2, "w"}).Input("i", {"a"}).Output("y", {"m", 2, "q"});
  some.Node(OnnxNodeText("Shape", {"i"}, {"s"}));
  some.Node(OnnxNodeText("Resize", {"x", "", "", "s"}, {"y"}).Ints("axes", {-1}));
  Load(some, 18);
  EXPECT_EQ(Run({{"x", Ones({4, 2, 3})}, {"i", Ones({6})}}), "[4,2,6] 1");

  OnnxGraphText wrong;
  wrong.Input("x", {1, 2, "w"}).Input("s", {2}).Output("y", {1, 2, "q"});
  wrong.Node(OnnxNodeText("Cast", {"s"}, {"sizes"}).Int("to", 7));
  wrong.Node(OnnxNodeText("Resize", {"x", "", "", "sizes"}, {"y"}, "r").Ints("axes", {2}));
  Load(wrong, 18);
  EXPECT_THAT(Run({{"x", Ones({1, 2, 3})}, {"s", Ones({2})}}),
              HasSubstr("node 'r' (Resize): there are 2 sizes for 1 axes"));
}

// The failure must have the node's name in the file, not that of a part into which it is lowered.
TEST_F(OnnxFed, FailuresNameTheNodeOfTheFile) {
  OnnxGraphText graph;
  graph.Input("x", {"n", "c", "h", "w"}).Floats("f", {1, 2, 1, 1}, {1, 2});
  graph.Output("y", {"n", "k", "p", "q"});
  graph.Node(OnnxNodeText("Conv", {"x", "f"}, {"y"}, "first\nconv"));
  Load(graph);
  RunRequest request;
  request.feeds = {{"x", Ones({1, 3, 2, 2})}};
  const Status failed = model_->Run(request).status();
  EXPECT_THAT(Message(failed), HasSubstr("node 'first\\nconv' (Conv): "));
  EXPECT_EQ(Details(failed).node, "first\nconv");
}

// C may be broadcast to the product, never the product to C.
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

// A parameter of one element is not broadcast to all channels.
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
