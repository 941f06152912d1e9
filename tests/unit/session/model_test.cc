// A model in a session, as applications use it: the cost of a new shape, what is kept and how much
// of it, and the driver calls per run. On the CPU and, if available, on OpenCL.
#include "engine/session/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/import/graph_builder.h"
#include "engine/session/runtime.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

const std::string kQuickstart =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0";

class ModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.opencl_cpu_devices = true;
    options.cache_dir = cache_.path();  // empty, so that every program that is needed is built
    runtime_ = Runtime::Create(options);
    if (!runtime_->Resolve(GetParam()).ok()) GTEST_SKIP() << "no device " << GetParam();
    SessionOptions session;
    session.device = GetParam();
    session.verify = true;
    auto opened = Session::Create(runtime_, session);
    ASSERT_TRUE(opened.ok()) << opened.status();
    session_ = *opened;
    auto model = session_->Load(kQuickstart, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  static Tensor Picture(int64_t batch, int64_t height, int64_t width) {
    Tensor out = Tensor::Allocate({DType::kU8, {batch, height, width, 3}}).value();
    int seed = 1;
    for (uint8_t& v : out.MutableAs<uint8_t>()) v = static_cast<uint8_t>(seed = seed * 75 % 65537);
    return out;
  }
  void Run(int64_t batch, int64_t height, int64_t width, RunReport* report = nullptr) {
    RunRequest request;
    request.feeds = {{"image", Picture(batch, height, width)}};
    request.fetches = {"logits"};
    auto result = model_->Run(request);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->outputs[0].second.shape(), Shape({batch, 1000}));
    if (report != nullptr) *report = result->report;
  }

  const testing::TemporaryFolder cache_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> model_;
};

// New shapes must cost no pass, no packing and no kernel build: only plans, and no more of those
// than their bound. The first three are one of each class of shapes: how many elements a copy moves
// at once depends on the divisors of a row's size, and each such number is a program.
TEST_P(ModelTest, TwentyShapesCostTwentyPlans) {
  Run(1, 40, 50);
  Run(2, 41, 51);
  Run(1, 42, 64);
  const ModelCounters before = model_->executables().counters();
  for (int i = 1; i <= 20; ++i) Run(1 + i % 3, 42 + i, 64 - i);
  const ModelCounters after = model_->executables().counters();
  EXPECT_EQ(after.graphs_compiled, 1);
  EXPECT_EQ(after.constants_packed, before.constants_packed);
  EXPECT_EQ(after.constant_bytes, before.constant_bytes);
  EXPECT_EQ(after.kernels_built, before.kernels_built);
  EXPECT_EQ(after.plans_made, before.plans_made + 20);
}

// One wait for a net that is completely on one device; one flush for the first launches, so that
// the device begins, one for each 32 more, and one for the rest.
TEST_P(ModelTest, ARunIsOneWaitAndFewFlushes) {
  RunReport report;
  Run(1, 48, 48);
  Run(1, 48, 48, &report);
  const bool opencl = std::string(GetParam()) == "gpu";
  EXPECT_EQ(report.stats.segments, 1);
  if (opencl) {
    EXPECT_GE(report.flushes, 2);
    EXPECT_LE(report.flushes, 4);
    EXPECT_EQ(report.waits, 1);
  }
}

// A chain of many nodes, each of which may be fetched, beside an input that only the first needs.
class FetchTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 170;
  void SetUp() override {
    testing::OnnxGraphText graph;
    graph.Input("x", {2}).Input("y", {2});
    graph.Node({"Add", {"x", "y"}, {"sum"}, "sum"});
    std::string last = "x";
    for (int i = 0; i < kNodes; ++i) {
      const std::string next = StrCat("t", i);
      graph.Node({"Softplus", {last}, {next}, next});
      last = next;
    }
    graph.Output(last, {2}).Output("sum", {2});
    auto session = Session::Create(Runtime::Create({}), SessionOptions{.device = "cpu"});
    ASSERT_TRUE(session.ok()) << session.status();
    auto model = (*session)->Load(folder_.Write("chain.onnx", testing::OnnxModelText(graph)), {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  Result<RunResult> Fetch(const std::string& name, std::vector<std::string> feeds) {
    RunRequest request;
    for (const std::string& feed : feeds) {
      request.feeds.emplace_back(feed,
                                 Tensor::Of<float>(DType::kF32, {2}, std::vector<float>{1, 2}));
    }
    request.fetches = {name};
    return model_->Run(request);
  }

  testing::TemporaryFolder folder_;
  std::shared_ptr<Model> model_;
};

TEST_F(FetchTest, CompiledGraphsAreBounded) {
  for (int i = 0; i < kNodes; ++i) {  // more than ten times the bound
    auto result = Fetch(StrCat("t", i), {"x"});
    ASSERT_TRUE(result.ok()) << result.status();
  }
  EXPECT_EQ(model_->executables().counters().graphs_compiled, kNodes);
  EXPECT_LE(model_->executables().counters().plans_made,
            16);  // of the graphs that are kept, one plan each
}

TEST_F(FetchTest, InputsThatNothingNeedsMakeNoGraphOfTheirOwn) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Fetch("t3", {"x"}).ok());
    ASSERT_TRUE(Fetch("t3", {"x", "y"}).ok());
    ASSERT_TRUE(Fetch("t3", {"y", "x"}).ok());
  }
  EXPECT_EQ(model_->executables().counters().graphs_compiled, 1);
  EXPECT_EQ(Fetch("sum", {"x"}).status().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTest, ::testing::Values("cpu", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

// Formats without targets or tags must not ignore them silently.
TEST(ModelData, TargetsAndTagsOfOtherFormatsAreRefused) {
  SessionOptions options;
  options.device = "cpu";
  const auto session = Session::Create(Runtime::Create({}), options).value();
  const testing::TemporaryFolder folder;
  testing::OnnxGraphText graph;
  graph.Input("x", {2}).Output("y", {2});
  graph.Node({"Relu", {"x"}, {"y"}, "relu"});
  const std::string path = folder.Write("relu.onnx", testing::OnnxModelText(graph));
  RunRequest request;
  request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {2}, std::vector<float>{-1, 2})}};
  request.targets = {"relu"};
  const Status targets = (*session->Load(path, {}))->Run(request).status();
  EXPECT_EQ(targets.code(), Code::kInvalidArgument);
  EXPECT_NE(Message(targets).find("target 'relu'"), std::string::npos) << targets;
  OpenModelOptions tagged;
  tagged.tags = {"serve"};
  const Status tags = session->Load(path, tagged).status();
  EXPECT_EQ(tags.code(), Code::kInvalidArgument);
  EXPECT_NE(Message(tags).find("and this is ONNX"), std::string::npos) << tags;
}

TEST(ModelData, ARunThatFeedsNothingTakesDefaults) {
  const auto session = Session::Create(Runtime::Create({}), {.device = "cpu"}).value();
  GraphBuilder g;
  const auto held = g.Constant(Tensor::Of<float>(DType::kF32, {1}, std::vector<float>{3}), "held");
  g.Op("Neg", {g.Op("PlaceholderWithDefault", {held}, {}, "p")}, {}, "y");
  const auto model = session->LoadGraph(g.GraphDef().value(), "defaults", {}).value();
  RunRequest request;
  request.fetches = {"y:0"};
  auto run = model->Run(request);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->outputs[0].second.As<float>()[0], -3);
  request.feeds = {{"p:0", Tensor::Of<float>(DType::kF32, {1}, std::vector<float>{5})}};
  run = model->Run(request);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->outputs[0].second.As<float>()[0], -5);
}

// Found while planning in either case; the stage tells whose fault it is.
TEST(ModelData, FaultsOfTheModelAreNotThoseOfItsFeeds) {
  SessionOptions options;
  options.device = "cpu";
  const auto session = Session::Create(Runtime::Create({}), options).value();
  const auto run = [&](bool fed) {
    GraphBuilder g;
    const Tensor twice = Tensor::Of<int32_t>(DType::kI32, {2}, std::vector<int32_t>{1, 1});
    const auto order = fed ? g.Placeholder(DType::kI32, PartialShape(Shape{2}), "order")
                           : g.Constant(twice, "order");
    g.Op("Identity", {g.Op("InvertPermutation", {order}, {}, "inverse")}, {}, "y");
    auto model = session->LoadGraph(g.GraphDef().value(), "inverse", {}).value();
    RunRequest request;
    request.fetches = {"y:0"};
    if (fed) request.feeds = {{"order:0", twice}};
    return model->Run(request).status();
  };
  for (const bool fed : {false, true}) {
    const Status status = run(fed);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_EQ(Details(status).node, "inverse");
    EXPECT_EQ(Details(status).stage, fed ? Stage::kRun : Stage::kCompile) << status;
  }
}

// Results are outside of the arenas, in memory that is asked for when the run begins.
TEST(ModelMemory, ResultsThatDoNotFitAreNamed) {
  const testing::TemporaryFolder folder;
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 1}).Input("z", {1, "m"}).Output("y", {"n", "m"});
  graph.Node(testing::OnnxNodeText("MatMul", {"x", "z"}, {"y"}, "outer"));
  const auto session = Session::Create(Runtime::Create({}),
                                       {.device = "cpu", .memory_limit_bytes = int64_t{64} << 20})
                           .value();
  const auto model =
      session->Load(folder.Write("m.onnx", testing::OnnxModelText(graph)), {}).value();
  RunRequest request;
  request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {8192, 1}, std::vector<float>(8192))},
                   {"z", Tensor::Of<float>(DType::kF32, {1, 8192}, std::vector<float>(8192))}};
  const Status refused = model->Run(request).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused;
  EXPECT_THAT(Message(refused), ::testing::AllOf(::testing::HasSubstr("node 'outer' (MatMul): "),
                                                 ::testing::HasSubstr("asked for ")));
  EXPECT_EQ(Details(refused).node, "outer");
}

}  // namespace
}  // namespace oncilla
