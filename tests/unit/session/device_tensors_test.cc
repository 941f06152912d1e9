// Tensors that stay on a device: passed from one run to the next without a copy, counted and freed,
// refused by other sessions. On a far device that counts its transfers, and on OpenCL if available.
#include <gmock/gmock.h>
#include <malloc.h>

#include <thread>

#include "engine/device/linked_backends.h"
#include "engine/ops/control.h"
#include "engine/run/executor.h"
#include "tests/unit/support/far_session.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeviceTensors : public testing::FarSession, public ::testing::WithParamInterface<bool> {
 protected:
  // True: on OpenCL.
  void SetUp() override {
    if (!GetParam()) return Open();
    RuntimeOptions runtime = RuntimeOptionsFromEnvironment();
    runtime.opencl_cpu_devices = true;
    runtime.threads = 2;
    auto made = Runtime::Create(runtime);
    if (!made->Resolve("gpu").ok()) GTEST_SKIP() << "not run: no OpenCL";
    auto session = Session::Create(made, SessionOptions{.device = "gpu"});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
  }
  RunResult Run(Model& model, const RunRequest& request) {
    auto result = model.Run(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : RunResult{};
  }
  static RunRequest From(DeviceTensor x) {
    RunRequest request;
    request.device_feeds = {{"x", std::move(x)}};
    return request;
  }
  int64_t ValueBytes() {
    int64_t bytes = 0;
    for (const LedgerLine& line :
         session_->memory().ledger().Lines(session_->device_set().names()[1])) {
      if (line.category == MemoryCategory::kValues) bytes += line.bytes;
    }
    return bytes;
  }
};

TEST_P(DeviceTensors, GoFromModelToModelWithoutACopy) {
  const auto one = LoadTurns(1), two = LoadTurns(2);
  Run(*one, Request(testing::Row(1, 2, 3, 4)));
  Run(*two, Request(testing::Row(1, 2, 3, 4)));
  if (!GetParam()) script_->uploaded_bytes = script_->downloaded_bytes = 0;
  RunRequest first = Request(testing::Row(1, 2, 3, 4));
  first.keep_all = true;
  RunResult a = Run(*one, first);
  ASSERT_EQ(a.kept.size(), 1u);
  ASSERT_TRUE(a.kept[0].valid());
  EXPECT_FALSE(a.outputs[0].second.valid());
  EXPECT_EQ(a.report.stats.copies, 1) << "the feed";
  EXPECT_EQ(a.kept[0].device_name(), session_->device_set().names()[1]);
  RunRequest second = From(a.kept[0]);
  second.keep = {"y"};
  const RunResult b = Run(*two, second);
  EXPECT_EQ(b.report.stats.copies, 0);
  EXPECT_EQ(b.report.stats.copied_bytes, 0);
  const RunResult c = Run(*one, From(b.kept[0]));
  EXPECT_EQ(c.report.stats.copies, 1) << "the fetch";
  EXPECT_TRUE(c.kept.empty());
  EXPECT_THAT(Values(c.outputs[0].second), ElementsAre(1, 2, 3, 4));
  if (!GetParam()) {
    EXPECT_EQ(script_->uploaded_bytes, 16);
    EXPECT_EQ(script_->downloaded_bytes, 16);
  }
  // Neither the feed nor the result must have been overwritten.
  EXPECT_THAT(Values(*a.kept[0].Read()), ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(Values(*b.kept[0].Read()), ElementsAre(2, 3, 4, 1));
}

TEST_P(DeviceTensors, AreCountedAndGoBack) {
  const auto model = LoadTurns(1);
  EXPECT_EQ(ValueBytes(), 0);
  {
    RunRequest request = Request(testing::Row(1, 2, 3, 4));
    request.keep_all = true;
    const RunResult result = Run(*model, request);
    EXPECT_GE(ValueBytes(), 16);
    EXPECT_THAT(session_->memory().Report(), HasSubstr("values"));
    DeviceTensor copy = result.kept[0].Reshaped({4});
    EXPECT_EQ(copy.desc().shape, Shape{4});
  }
  EXPECT_EQ(ValueBytes(), 0);
  const auto uploaded = Uploaded(testing::Row(5, 6, 7, 8));
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_GE(ValueBytes(), 16);
  EXPECT_THAT(Values(Run(*model, From(*uploaded)).outputs[0].second), ElementsAre(8, 5, 6, 7));
}

TEST_P(DeviceTensors, OfOtherOrClosedSessionsAreRefused) {
  const auto model = LoadTurns(1);
  const auto tensor = Uploaded(testing::Row(1, 2, 3, 4));
  ASSERT_TRUE(tensor.ok());
  const auto first = session_;
  SetUp();
  const auto other = LoadTurns(1);
  Status refused = other->Run(From(*tensor)).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("of another session"));
  EXPECT_THAT(Message(refused), HasSubstr("input 'x'"));
  EXPECT_TRUE(tensor->Read().ok());
  first->Close();
  EXPECT_EQ(tensor->Read().status().code(), Code::kFailedPrecondition);
  refused = other->Run(From(*tensor)).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(Message(refused), HasSubstr("closed"));
}

TEST_P(DeviceTensors, OutputsThatAreInputsOrEachOther) {
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 4}).Output("y", {"n", 4}).Output("z", {"n", 4}).Output("x2", {"n", 4});
  graph.Floats("turn", {4, 4}, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
  graph.Node({"MatMul", {"x", "turn"}, {"y"}, "y"});
  graph.Node({"Identity", {"y"}, {"z"}, "z"});
  graph.Node({"Identity", {"x"}, {"x2"}, "x2"});
  const auto model = *session_->Load(folder_.Write("all.onnx", testing::OnnxModelText(graph)), {});
  const auto x = Uploaded(testing::Row(1, 2, 3, 4));
  ASSERT_TRUE(x.ok()) << x.status();
  for (const bool keep : {true, false}) {
    RunRequest request = From(*x);
    request.keep_all = keep;
    const RunResult result = Run(*model, request);
    ASSERT_EQ(result.outputs.size(), 3u);
    const std::vector<std::vector<float>> want = {{4, 1, 2, 3}, {4, 1, 2, 3}, {1, 2, 3, 4}};
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(keep, i < result.kept.size() && result.kept[i].valid()) << i;
      const Tensor got = keep ? *result.kept[i].Read() : result.outputs[i].second;
      EXPECT_EQ(Values(got), want[i]) << result.outputs[i].first;
    }
  }
}

TEST_P(DeviceTensors, HaveTheirOwnShapeAndType) {
  const auto model = LoadTurns(1);
  // Another shape is another plan; the tensor's own shape is what counts.
  const auto two =
      Uploaded(Tensor::Of<float>(DType::kF32, {2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_TRUE(two.ok());
  const RunResult result = Run(*model, From(*two));
  EXPECT_THAT(Values(result.outputs[0].second), ElementsAre(4, 1, 2, 3, 8, 5, 6, 7));
  const auto bad = Uploaded(Tensor::Of<float>(DType::kF32, {2}, std::vector<float>{1, 2}));
  ASSERT_TRUE(bad.ok());
  const Status refused = model->Run(From(*bad)).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("must be f32[n,4], not f32[2]"));
}

// The contents of such an input are part of the plan, so they are copied to the host.
TEST_P(DeviceTensors, ThoseThatFixShapesAreReadByTheRun) {
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 4}).Input("shape", {2}, 7).Output("y", {"a", "b"});
  graph.Floats("turn", {4, 4}, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
  graph.Node({"MatMul", {"x", "turn"}, {"t"}, "t"});
  graph.Node({"Reshape", {"t", "shape"}, {"y"}, "y"});
  const auto model = *session_->Load(folder_.Write("view.onnx", testing::OnnxModelText(graph)), {});
  for (const auto& sizes : {std::vector<int64_t>{2, 2}, std::vector<int64_t>{4, 1}}) {
    const auto shape = Uploaded(Tensor::Int64s(sizes));
    ASSERT_TRUE(shape.ok()) << shape.status();
    RunRequest request = Request(testing::Row(1, 2, 3, 4));
    request.device_feeds = {{"shape", *shape}};
    const RunResult result = Run(*model, request);
    EXPECT_EQ(result.outputs[0].second.shape(), Shape(sizes.begin(), sizes.end()));
    EXPECT_THAT(Values(result.outputs[0].second), ElementsAre(4, 1, 2, 3));
  }
}

TEST_P(DeviceTensors, ManyThreadsChainAtOnce) {
  const auto model = LoadTurns(3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto f = static_cast<float>(t);
      RunRequest request = Request(testing::Row(f, 2, 3, 4));
      request.keep_all = true;
      auto result = model->Run(request);
      for (int round = 0; round < 11 && result.ok(); ++round) {
        RunRequest next;
        next.device_feeds = {{"x", result->kept[0]}};
        next.keep_all = true;
        result = model->Run(next);
      }
      if (!result.ok() || Values(*result->kept[0].Read()) != std::vector<float>{f, 2, 3, 4}) {
        ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ValueBytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(On, DeviceTensors, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "OpenCl" : "Far"; });

class DeviceTensorsFar : public testing::FarSession {};

// The device cannot run a node in between: its inputs are copied to the host, once.
TEST_F(DeviceTensorsFar, AreCopiedToWhereTheyAreNeeded) {
  Open();
  script_->refused_op = "Neg";
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 4}).Output("y", {"n", 4});
  graph.Floats("turn", {4, 4}, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
  graph.Node({"Neg", {"x"}, {"m"}, "m"});
  graph.Node({"MatMul", {"m", "turn"}, {"y"}, "y"});
  const auto model = *session_->Load(folder_.Write("neg.onnx", testing::OnnxModelText(graph)), {});
  const auto x = Uploaded(testing::Row(1, 2, 3, 4));
  ASSERT_TRUE(x.ok());
  RunRequest request;
  request.device_feeds = {{"x", *x}};
  request.keep_all = true;
  const auto result = model->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.stats.copies, 2) << "one download for Neg, and one upload";
  EXPECT_THAT(Values(*result->kept[0].Read()), ElementsAre(-4, -1, -2, -3));
}

TEST_F(DeviceTensorsFar, ReadingFromAHungDeviceEndsWithTheWatchdogOrTheSession) {
  Open(SessionOptions{.watchdog_ms = 100});
  auto x = Uploaded(testing::Row(1, 2, 3, 4));
  ASSERT_TRUE(x.ok());
  script_->hang = true;
  EXPECT_EQ(x->Read().status().code(), Code::kUnavailable);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    session_->Close();
  });
  EXPECT_FALSE(x->Read().ok());
  closer.join();
  script_->hang = false;
}

// A value that fixes a shape must be copied to the host before anything runs.
TEST_F(DeviceTensorsFar, ARunThatReadsFromAHungDeviceEndsInTime) {
  Open();
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 4}).Input("s", {2}, 7).Output("y", {"a", "b"});
  graph.Node({"Reshape", {"x", "s"}, {"y"}, "y"});
  const auto model =
      *session_->Load(folder_.Write("shape.onnx", testing::OnnxModelText(graph)), {});
  const auto s = Uploaded(Tensor::Int64s(std::vector<int64_t>{2, 2}));
  ASSERT_TRUE(s.ok()) << s.status();
  RunRequest request;
  request.feeds = {{"x", testing::Row(1, 2, 3, 4)}};
  request.device_feeds = {{"s", *s}};
  const auto right = model->Run(request);
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->outputs[0].second.shape(), Shape({2, 2}));
  script_->hang = true;
  const auto begin = std::chrono::steady_clock::now();
  request.timeout = std::chrono::milliseconds(30);
  EXPECT_EQ(model->Run(request).status().code(), Code::kDeadlineExceeded);
  RunRequest cancelled = request;
  cancelled.timeout = {};
  cancelled.cancel = CancellationToken::Create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancelled.cancel.Cancel();
  });
  EXPECT_EQ(model->Run(cancelled).status().code(), Code::kCancelled);
  canceller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  script_->hang = false;
  const auto again = model->Run(request);
  EXPECT_TRUE(again.ok()) << again.status();
}

// The host buffer into which a constant was packed is freed once the constant is on its device.
TEST(ConstantsFar, LeaveNothingBehindInHostMemory) {
  constexpr int64_t kBytes = 8 << 20;
  ThreadPool threads(1);
  const auto far = testing::MakeFarDevice(&threads, std::make_shared<testing::FarScript>());
  Device* const devices[] = {far.get()};
  Ledger ledger;
  Pool pool(far.get(), &ledger, {});
  ConstantStore store(devices, {&pool}, ledger.AddOwner(OwnerKind::kModel, "weights"));
  const ConstantStore::Wanted wanted(0, Tensor::Int64s(std::vector<int64_t>{1}),
                                     {.bytes = kBytes, .write = [](const Tensor&, auto to) {
                                        std::fill(to.begin(), to.end(), std::byte{1});
                                        return Status();
                                      }});
  ASSERT_TRUE(store.Reserve({&wanted, 1}).ok());
  const auto allocated = [] {
    const auto heap = mallinfo2();
    return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  };
  const int64_t before = allocated();
  ASSERT_TRUE(store.Get(wanted).ok());
  EXPECT_LT(allocated() - before, kBytes / 2);
}

// (i, x) -> i < rounds; (i + 1, x turned one place by a product large enough for a device)
Module TurningLoop(int32_t rounds, int64_t width) {
  const auto constant = [](Graph& g, int32_t v) {
    return g.AddConstant(Tensor::Of<int32_t>(DType::kI32, {}, {&v, 1}));
  };
  const Fact i_fact = Fact::Of(DType::kI32, PartialShape::OfRank(0));
  const Fact x_fact = Fact::Of(DType::kF32, Shape{1, width});
  Graph cond(OpSet::Builtin()), body(OpSet::Builtin()), main(OpSet::Builtin());
  ValueId i = cond.AddInput("i", i_fact);
  cond.AddInput("x", x_fact);
  cond.AddOutput("more", cond.Add("less", "Less", {}, {i, constant(cond, rounds)}).value());
  i = body.AddInput("i", i_fact);
  ValueId x = body.AddInput("x", x_fact);
  Tensor turn = *Tensor::Allocate({DType::kF32, {width, width}});
  for (int64_t row = 0; row < width; ++row) {
    turn.MutableAs<float>()[static_cast<size_t>(row * width + (row + 1) % width)] = 1;
  }
  body.AddOutput("i", body.Add("next", "Add", {}, {i, constant(body, 1)}).value());
  body.AddOutput("x", body.Add("turn", "MatMul", {}, {x, body.AddConstant(turn)}).value());
  x = main.AddInput("x", x_fact);
  const WhileAttrs attrs{"cond", "body", {"i32[]", StrCat("f32[1,", width, "]")}};
  const auto out = main.AddNode("loop", "While", WriteAttrs(attrs), {constant(main, 0), x}).value();
  main.AddOutput("x", out[1]);
  Module module(std::move(main));
  module.functions.emplace_back("cond", std::move(cond));
  module.functions.emplace_back("body", std::move(body));
  return module;
}

TEST(DeviceTensorsInLoops, StayBetweenRounds) {
  constexpr int32_t kRounds = 6;
  constexpr int64_t kWidth = 512;
  ThreadPool threads(2);
  const auto script = std::make_shared<testing::FarScript>();
  std::vector<std::string> notes;
  const Backend* backend = LinkedBackends()[0];
  OpenOptions open;
  open.threads = &threads;
  const auto cpu = *backend->open(backend->discover({}, notes)[0], open);
  const auto far = testing::MakeFarDevice(&threads, script);
  Ledger ledger;
  const OwnerId owner = ledger.AddOwner(OwnerKind::kModel, "loop");
  Pool cpu_pool(cpu.get(), &ledger, {}), far_pool(far.get(), &ledger, {});
  const std::vector<Device*> devices = {cpu.get(), far.get()};
  const std::vector<Pool*> pools = {&cpu_pool, &far_pool};
  const std::vector<std::string> names = {"/job:localhost/replica:0/task:0/device:CPU:0",
                                          "/job:localhost/replica:0/task:0/device:GPU:0"};
  ConstantStore constants(devices, pools, owner);
  CompileOptions options;
  options.placement.preferred = 1;
  auto compiled = Compile(TurningLoop(kRounds, kWidth), devices, names, constants, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExecutorOptions with_links;
  for (size_t d = 0; d < 2; ++d) {
    with_links.links.push_back(std::make_shared<DeviceLink>(devices[d], pools[d], names[d], owner,
                                                            std::chrono::milliseconds(0)));
  }
  for (const bool stays : {true, false}) {
    Executor executor(*compiled, devices, pools, owner, stays ? with_links : ExecutorOptions());
    Tensor x = *Tensor::Allocate({DType::kF32, {1, kWidth}});
    x.MutableAs<float>()[0] = 7;
    RunStats stats;
    RunControl control;
    control.stats = &stats;
    auto out = executor.Run(std::vector<Tensor>{x}, control);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].As<float>()[kRounds], 7);
    // Both values up once and x down at the end, and the count for each decision of the host's; or
    // both up and down in each round.
    EXPECT_EQ(stats.copies, stays ? 3 + kRounds : 4 * kRounds);
  }
  for (const auto& link : with_links.links) link->Close();
}

}  // namespace
}  // namespace oncilla
