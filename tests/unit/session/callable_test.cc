// Callables: positions instead of names, values on the host and on devices, and what happens to
// them when their model changes or is unloaded.
#include "engine/session/callable.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/unit/support/far_session.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Callables : public testing::FarSession {
 protected:
  void SetUp() override {
    Open();
    testing::OnnxGraphText graph;
    graph.Input("a", {"n", 4}).Input("b", {"n", 4}).Input("spare", {2});
    graph.Output("sum", {"n", 4}).Output("difference", {"n", 4});
    graph.Node({"Add", {"a", "b"}, {"sum"}, "sum"});
    graph.Node({"Sub", {"a", "b"}, {"difference"}, "difference"});
    model_ = *session_->Load(folder_.Write("two.onnx", testing::OnnxModelText(graph)), {});
  }
  Result<std::shared_ptr<Callable>> Make(std::vector<std::string> feeds,
                                         std::vector<std::string> fetches) {
    CallableOptions options;
    options.feeds = std::move(feeds);
    options.fetches = std::move(fetches);
    return Callable::Create(model_, options);
  }

  std::shared_ptr<Model> model_;
  const RunValue a_ = testing::Row(10, 20, 30, 40), b_ = testing::Row(1, 2, 3, 4);
};

TEST_F(Callables, TakeAndGiveByPosition) {
  auto one = Make({"b", "a"}, {"difference", "sum"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT((*one)->outputs(), ElementsAre("difference", "sum"));
  auto out = (*one)->Run(std::vector<RunValue>{b_, a_});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0].host()), ElementsAre(9, 18, 27, 36));
  EXPECT_THAT(Values((*out)[1].host()), ElementsAre(11, 22, 33, 44));
  auto spare = Make({"spare", "a", "b"}, {"sum"});
  ASSERT_TRUE(spare.ok()) << spare.status();
  out = (*spare)->Run(std::vector<RunValue>{Tensor::Scalar(1), a_, b_});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->size(), 1u);
}

TEST_F(Callables, RefuseWhatDoesNotFitWhenMadeOrCalled) {
  EXPECT_EQ(Make({"a"}, {"sum"}).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(Make({"a", "b"}, {"product"}).ok());
  auto one = Make({"a", "b"}, {"sum"});
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(Message((*one)->Run(std::vector<RunValue>{a_}).status()),
              HasSubstr("takes 2 feeds, got 1"));
  EXPECT_THAT(Message((*one)->Run(std::vector<RunValue>{a_, RunValue()}).status()),
              HasSubstr("feed 1 ('b') is empty"));
  const Status shape = (*one)->Run(std::vector<RunValue>{a_, Tensor::Scalar(1)}).status();
  EXPECT_THAT(Message(shape), HasSubstr("input 'b' must be f32[n,4]"));
  CallOptions options;
  options.cancel = CancellationToken::Create();
  options.cancel.Cancel();
  EXPECT_EQ((*one)->Run(std::vector<RunValue>{a_, b_}, options).status().code(), Code::kCancelled);
}

TEST_F(Callables, ChainOnTheDevice) {
  CallableOptions options;
  options.feeds = {"a", "b"};
  options.fetches = {"sum"};
  options.keep_all = true;
  auto sum = *Callable::Create(model_, options);
  RunValue total = a_;
  RunStats stats;
  CallOptions call;
  const RunValue b = *session_->device_set().ToDevice(b_.host(), session_->device_set().names()[1]);
  total = (*sum->Run(std::vector<RunValue>{total, b}))[0];
  call.stats = &stats;
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(total.on_device());
    total = (*sum->Run(std::vector<RunValue>{total, b}, call))[0];
  }
  EXPECT_EQ(stats.copies, 0);
  EXPECT_EQ(stats.segments, 9);
  EXPECT_THAT(Values(*total.ToHost()), ElementsAre(20, 40, 60, 80));
}

TEST_F(Callables, OverlapFromManyThreads) {
  auto sum = *Make({"a", "b"}, {"sum"});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const auto f = static_cast<float>(t * 100 + i);
        const auto out = sum->Run(std::vector<RunValue>{testing::Row(f, f, f, f), b_});
        if (!out.ok() || Values((*out)[0].host())[3] != f + 4) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Callables, OutliveTheirModelsMemoryButNotItsUse) {
  auto sum = *Make({"a", "b"}, {"sum"});
  ASSERT_TRUE(sum->Run(std::vector<RunValue>{a_, b_}).ok());
  EXPECT_GT(model_->Unload().bytes, 0);
  EXPECT_EQ(session_->memory().Devices()[1].in_use_bytes, 0);
  EXPECT_EQ(sum->Run(std::vector<RunValue>{a_, b_}).status().code(), Code::kFailedPrecondition);
  model_.reset();
  session_.reset();
  EXPECT_FALSE(sum->Run(std::vector<RunValue>{a_, b_}).ok());
}

// A variable that was a constant so far starts to change: graphs that treated it as a constant must
// be built again.
TEST(CallablesOfModelsWithState, SeeWhatOthersWrite) {
  const std::string path =
      std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/runs/state/model";
  RuntimeOptions runtime;
  runtime.threads = 2;
  auto session = *Session::Create(Runtime::Create(runtime), SessionOptions{.device = "cpu"});
  auto model = *session->Load(path, {});
  CallableOptions options;
  options.signature = "get";
  options.fetches = {"count"};
  auto count = *Callable::Create(model, options);
  const auto before = count->Run({});
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ((*before)[0].host().As<int64_t>()[0], 0);
  RunRequest add;
  add.signature = "add";
  const std::vector<float> one = {1, 2, 3};
  add.feeds = {{"x", Tensor::Of<float>(DType::kF32, {3}, one)}};
  ASSERT_TRUE(model->Run(add).ok());
  const auto after = count->Run({});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)[0].host().As<int64_t>()[0], 1);
}

// The letters of an equation may have size one and broadcast, which only the feeds tell.
class CallablesForWhatIsFed : public testing::FarSession {
 protected:
  void SetUp() override {
    Open();
    testing::OnnxGraphText graph;
    graph.Input("x", {"a", "b"}).Input("z", {"c", "d"}).Output("y", {"e", "f"});
    graph.Node(
        testing::OnnxNodeText("Einsum", {"x", "z"}, {"y"}, "sum").String("equation", "ab,bc->ac"));
    model_ = *session_->Load(folder_.Write("einsum.onnx", testing::OnnxModelText(graph)), {});
  }
  static Tensor Ones(Shape shape) {
    const std::vector<float> ones(static_cast<size_t>(shape.elements()), 1);
    return Tensor::Of<float>(DType::kF32, std::move(shape), ones);
  }
  std::shared_ptr<Callable> Make(bool keep = false) {
    CallableOptions options;
    options.feeds = {"z", "x"};
    options.keep_all = keep;
    return *Callable::Create(model_, options);
  }
  int64_t graphs() const { return model_->executables().counters().graphs_compiled; }
  std::shared_ptr<Model> model_;
};

TEST_F(CallablesForWhatIsFed, HaveAGraphForIt) {
  const auto sum = Make();
  const auto run = [&](const Shape& z, const Shape& x) -> std::string {
    const auto out = sum->Run(std::vector<RunValue>{Ones(z), Ones(x)});
    if (!out.ok()) return Message(out.status());
    return StrCat((*out)[0].desc().shape, " ", Values((*out)[0].host())[0]);
  };
  EXPECT_EQ(run({3, 4}, {2, 3}), "[2,4] 3");
  EXPECT_EQ(graphs(), 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run({3, 4}, {2, 1}), "[2,4] 3");
    EXPECT_EQ(run({1, 4}, {2, 3}), "[2,4] 3");
    EXPECT_EQ(run({3, 4}, {2, 3}), "[2,4] 3");
    EXPECT_EQ(graphs(), 3);
  }
  EXPECT_THAT(run({2, 4}, {2, 3}), HasSubstr("node 'sum' (MatMul): inner sizes differ"));
  EXPECT_THAT(run({3, 4, 1}, {2, 3}), HasSubstr("input 'z' must be"));
}

TEST_F(CallablesForWhatIsFed, TakeValuesOnDevices) {
  const auto sum = Make(/*keep=*/true);
  const RunValue z = *session_->device_set().ToDevice(Ones({3, 4}), "gpu");
  const RunValue x = *session_->device_set().ToDevice(Ones({2, 1}), "gpu");
  const auto out = sum->Run(std::vector<RunValue>{z, x});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_TRUE((*out)[0].on_device());
  EXPECT_THAT(Values(*(*out)[0].ToHost()), ::testing::Each(3));
  // So do runs.
  RunRequest request;
  request.device_feeds = {{"z", z.device()}, {"x", x.device()}};
  const auto ran = model_->Run(request);
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_THAT(Values(ran->outputs[0].second), ::testing::Each(3));
}

// tf.function keeps a trace for each kind of arguments.
class CallablesOfSeveralTraces : public ::testing::Test {
 protected:
  Result<std::shared_ptr<Callable>> Make(const std::string& signature,
                                         std::vector<std::string> fetches,
                                         std::vector<std::string> keep = {}) {
    CallableOptions options;
    options.signature = signature;
    options.feeds = {"x"};
    options.fetches = std::move(fetches);
    options.keep = std::move(keep);
    return Callable::Create(model_, options);
  }
  static std::string Run(Callable& callable, Shape shape) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 1.5f);
    const auto out = callable.Run(
        std::vector<RunValue>{Tensor::Of<float>(DType::kF32, std::move(shape), values)});
    return out.ok() ? StrCat((*out)[0].desc().shape) : Message(out.status());
  }
  std::shared_ptr<Session> session_ =
      *Session::Create(Runtime::Create({}), SessionOptions{.device = "cpu"});
  std::shared_ptr<Model> model_ = *session_->Load(
      std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/runs/kinds/model", {});
};

TEST_F(CallablesOfSeveralTraces, ChooseByWhatIsFed) {
  auto scale = Make("scale", {"y"});
  ASSERT_TRUE(scale.ok()) << scale.status();
  EXPECT_THAT((*scale)->outputs(), ElementsAre("y"));
  EXPECT_EQ(Run(**scale, {4}), "[4]");
  EXPECT_EQ(Run(**scale, {2, 3}), "[2,3]");
  EXPECT_EQ(Run(**scale, {4}), "[4]");
  EXPECT_EQ(model_->executables().counters().graphs_compiled, 2);
  EXPECT_THAT(Run(**scale, {2, 4}), HasSubstr("input 'x' must be f32["));
  EXPECT_THAT(Message((*scale)->Run({}).status()), HasSubstr("takes 1 feeds, got 0"));

  auto sized = Make("sized", {});
  ASSERT_TRUE(sized.ok()) << sized.status();
  EXPECT_EQ(Run(**sized, {3}), "[3]");
  EXPECT_EQ(Run(**sized, {1}), "[1]");
  EXPECT_EQ((*sized)->outputs().size(), 2u);
  model_->ClearPlacement();  // drops all graphs
  EXPECT_EQ(Run(**sized, {3}), "[3]");
}

TEST_F(CallablesOfSeveralTraces, RefuseWhatNoneOfThemHas) {
  EXPECT_THAT(Message(Make("scale", {"y"}, {"q"}).status()), HasSubstr("'q' is to be kept"));
  EXPECT_EQ(Make("none", {"y"}).status().code(), Code::kNotFound);
  const auto unknown = Make("scale", {"q"});
  const auto values = std::vector<RunValue>{Tensor::Of<float>(DType::kF32, {1}, std::vector{1.f})};
  EXPECT_FALSE(unknown.ok() && (*unknown)->Run(values).ok());
}

}  // namespace
}  // namespace oncilla
