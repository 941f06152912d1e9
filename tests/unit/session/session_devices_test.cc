// Several devices in one session: nodes on requested devices, runs that change the device, parts of
// a device, and fallback after a failure. The devices are logical ones of the CPU, so that this
// runs everywhere, and of the first OpenCL device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/import/graph_builder.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/far_device.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

Tensor Floats(Shape shape, std::vector<float> values) {
  return Tensor::Of<float>(DType::kF32, std::move(shape), values);
}

template <class T>
Code CodeOf(const Result<T>& result) {
  return result.status().code();
}
Code CodeOf(const Status& status) { return status.code(); }

std::string Full(const std::string& local) {
  return "/job:localhost/replica:0/task:0/device:" + local;
}

// y = relu(x) @ w + b with 2 x 3 by 3 x 2.
std::string Network(const std::string& scope = {}) {
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{2, 3}), "x");
  const auto w = g.Constant(Floats({3, 2}, {1, 2, 3, 4, 5, 6}), "w");
  const auto b = g.Constant(Floats({2}, {10, 20}), "b");
  g.PushDevice(scope);
  const auto product = g.Op("MatMul", {g.Op("Relu", {x}, {}, "relu"), w}, {}, "product");
  g.PopDevice();
  const auto root = g.Op("Sqrt", {product}, {}, "root");
  g.Op("Add", {root, b}, {}, "y");
  return g.GraphDef().value();
}

RunRequest Feeds() {
  RunRequest request;
  request.feeds = {{"x:0", Floats({2, 3}, {-1, 0, 1, 1, 1, 1})}};
  return request;
}

// The devices of a session: two of a kind, or the CPU and a GPU.
class SessionDevices : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Session> Open(SessionOptions options = {}) {
    RuntimeOptions runtime = RuntimeOptionsFromEnvironment();
    runtime.opencl_cpu_devices = true;
    runtime.threads = 2;
    const std::string kind = GetParam();
    if (options.logical_devices.empty()) {
      options.logical_devices = {{kind + ":0", 64 << 20}, {kind + ":0", 32 << 20}};
    }
    if (options.device == "auto") options.device = First();
    runtime.log =
        std::make_shared<Log>(LogLevel::kWarning, [this](LogLevel, std::string_view text) {
          ++warnings_;
          told_ += StrCat(text, "\n");
        });
    auto session = Session::Create(Runtime::Create(runtime), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : nullptr;
  }
  void SetUp() override {
    RuntimeOptions runtime;
    runtime.opencl_cpu_devices = true;
    if (!Runtime::Create(runtime)->Resolve(First()).ok()) {
      GTEST_SKIP() << "not run: no device " << First();
    }
  }
  int warnings_ = 0;
  std::string told_;  // warnings, one per line
  std::string First() const { return std::string(GetParam()) + ":0"; }
  std::string Second() const { return std::string(GetParam()) + ":1"; }

  std::shared_ptr<Model> LoadNetwork(Session& session, const std::string& scope = {},
                                     StoredDevices stored = StoredDevices::kIgnore) {
    OpenModelOptions options;
    options.stored_devices = stored;
    auto model = session.LoadGraph(Network(scope), "network", options);
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }
  static void ExpectRight(const Result<RunResult>& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    const auto y = result->outputs[0].second.As<float>();
    const float want[] = {std::sqrt(5.0f) + 10, std::sqrt(6.0f) + 20, 13, std::sqrt(12.0f) + 20};
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], want[i], 1e-5) << i;
  }
  static NodePlacement Where(Model& model, const std::string& node) {
    auto executor = model.Executable({"", {"x:0"}, {}, {}});
    EXPECT_TRUE(executor.ok()) << executor.status();
    for (const NodePlacement& placed : (*executor)->compiled().placement.nodes) {
      if (placed.node == node) return placed;
    }
    ADD_FAILURE() << "no node " << node;
    return {};
  }
  static std::string DeviceOf(Model& model, const NodePlacement& placed) {
    auto executor = model.Executable({"", {"x:0"}, {}, {}});
    return (*executor)->compiled().placement.devices[static_cast<size_t>(placed.device)];
  }
};

// Two products that differ only in the requested device must not be merged.
TEST_P(SessionDevices, EqualNodesInTwoScopesRunOnTwoDevices) {
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{2, 3}), "x");
  const auto w = g.Constant(Floats({3, 2}, {1, 2, 3, 4, 5, 6}), "w");
  for (const char* name : {"first", "second", "third"}) {
    g.PushDevice(StrCat("/device:", GetParam(), ":", name == std::string("second") ? 1 : 0));
    g.Op("MatMul", {x, w}, {}, name);
    g.PopDevice();
  }
  const auto session = Open();
  OpenModelOptions follow;
  follow.stored_devices = StoredDevices::kSoft;
  const auto model = session->LoadGraph(g.GraphDef().value(), "graph", follow);
  ASSERT_TRUE(model.ok()) << model.status();
  RunRequest request = Feeds();
  request.fetches = {"first:0", "second:0", "third:0"};
  const auto result = (*model)->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  int ran = 0, devices = 0;
  for (const int nodes : result->report.nodes_on) {
    ran += nodes;
    devices += nodes > 0;
  }
  EXPECT_EQ(devices, 2) << result->report.Line();
  EXPECT_EQ(ran, 2) << result->report.Line();  // the first and the third are one
}

TEST_P(SessionDevices, PartsAreDevicesWithLimitsOfTheirOwn) {
  const auto session = Open();
  const auto names = session->device_set().visible();
  int parts = 0;
  for (const ListedDevice& device : names) {
    parts += device.short_name() == First() || device.short_name() == Second();
  }
  EXPECT_EQ(parts, 2);
  const auto model = LoadNetwork(*session);
  RunRequest request = Feeds();
  ExpectRight(model->Run(request));
  request.device = Second();
  ExpectRight(model->Run(request));
  for (const DeviceMemory& memory : session->memory().Devices()) {
    if (memory.device == Full(First())) {
      EXPECT_EQ(memory.limit_bytes, 64 << 20);
    } else if (memory.device == Full(Second())) {
      EXPECT_EQ(memory.limit_bytes, 32 << 20);
      EXPECT_GT(memory.pool_bytes, 0);
    }
  }
}

TEST_P(SessionDevices, ALimitOfAPartIsItsOwn) {
  SessionOptions options;
  options.logical_devices = {{First(), 64 << 20}, {First(), 100}};
  const auto session = Open(options);
  const auto model = LoadNetwork(*session);
  RunRequest request = Feeds();
  request.device = Second();
  const Status full = model->Run(request).status();
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full;
  EXPECT_EQ(Details(full).device, Full(Second()));
  request.device = First();
  ExpectRight(model->Run(request));
}

TEST_P(SessionDevices, RequestsByNameTypeAndRule) {
  const auto session = Open();
  const auto model = LoadNetwork(*session);
  ASSERT_TRUE(model->Place({{.nodes = "prod*", .device = Full(Second())}}).ok());
  NodePlacement placed = Where(*model, "product");
  EXPECT_EQ(DeviceOf(*model, placed), Full(Second()));
  EXPECT_EQ(placed.reason, PlacementReason::kRequested);
  EXPECT_THAT(placed.detail, HasSubstr("nodes 'prod*'"));
  EXPECT_EQ(DeviceOf(*model, Where(*model, "root")), Full(First()));
  auto result = model->Run(Feeds());
  ExpectRight(result);
  EXPECT_GT(result->report.stats.copies, 0);

  // By the op type in the model's format; the last request wins.
  ASSERT_TRUE(model
                  ->Place({{.op = "Sqrt", .device = "/device:" + Second()},
                           {.nodes = "product", .device = First()}})
                  .ok());
  EXPECT_EQ(DeviceOf(*model, Where(*model, "root")), Full(Second()));
  EXPECT_EQ(DeviceOf(*model, Where(*model, "product")), Full(First()));
  ExpectRight(model->Run(Feeds()));

  // A rule sees names and types.
  model->ClearPlacement();
  std::set<std::string> seen;
  PlacementRequest rule;
  rule.rule = [&](const NodeInQuestion& node) -> std::string {
    seen.insert(std::string(node.op));
    return node.op == "MatMul" ? Full(Second()) : "";
  };
  ASSERT_TRUE(model->Place({rule}).ok());
  EXPECT_EQ(DeviceOf(*model, Where(*model, "product")), Full(Second()));
  EXPECT_TRUE(seen.count("Sqrt")) << "rules see the format's own types";
  ExpectRight(model->Run(Feeds()));

  // A request for a weight applies to the nodes that read it.
  model->ClearPlacement();
  ASSERT_TRUE(model->Place({{.nodes = "w", .device = Second()}}).ok());
  EXPECT_EQ(DeviceOf(*model, Where(*model, "product")), Full(Second()));
  EXPECT_THAT(Where(*model, "product").detail, HasSubstr("its weight 'w'"));
  ExpectRight(model->Run(Feeds()));
}

TEST_P(SessionDevices, WeightsMoveWithTheirNodes) {
  const auto session = Open();
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{2, 512}), "x");
  Tensor weights = Tensor::Allocate({DType::kF32, {512, 512}}).value();
  std::fill(weights.mutable_bytes().begin(), weights.mutable_bytes().end(), std::byte{0});
  g.Op("MatMul", {x, g.Constant(weights, "w")}, {}, "y");
  const auto model = *session->LoadGraph(g.GraphDef().value(), "weights", {});
  RunRequest request;
  Tensor zeros = Tensor::Allocate({DType::kF32, {2, 512}}).value();
  std::fill(zeros.mutable_bytes().begin(), zeros.mutable_bytes().end(), std::byte{0});
  request.feeds = {{"x:0", zeros}};
  const auto taken = [&](const std::string& device) {
    for (const DeviceMemory& memory : session->memory().Devices()) {
      if (memory.device == Full(device)) return memory.pool_bytes;
    }
    return int64_t{0};
  };
  ASSERT_TRUE(model->Run(request).ok());
  EXPECT_GE(taken(First()), 512 * 512 * 4);
  EXPECT_EQ(taken(Second()), 0);
  ASSERT_TRUE(model->Place({{.nodes = "y", .device = Second()}}).ok());
  ASSERT_TRUE(model->Run(request).ok());
  session->memory().Trim();
  EXPECT_LT(taken(First()), 512 * 512 * 4);
  EXPECT_GE(taken(Second()), 512 * 512 * 4);
}

TEST_P(SessionDevices, RunsTakeTurnsOnDevicesWithPlansKept) {
  const auto session = Open();
  const auto model = LoadNetwork(*session);
  RunRequest request = Feeds();
  for (int round = 0; round < 3; ++round) {
    for (const std::string& device : {First(), Second(), std::string("cpu")}) {
      request.device = device;
      auto result = model->Run(request);
      ExpectRight(result);
      const RunReport& report = result->report;
      EXPECT_GT(report.nodes_on[static_cast<size_t>(report.preferred)], 0);
      if (device != "cpu") {
        EXPECT_EQ(report.devices[static_cast<size_t>(report.preferred)], Full(device));
      }
    }
  }
  const bool cpu = std::string(GetParam()) == "CPU";
  EXPECT_EQ(model->executables().counters().graphs_compiled, cpu ? 2 : 3);
  request.device = "gpu:7";
  EXPECT_EQ(CodeOf(model->Run(request)), Code::kNotFound);
}

TEST_P(SessionDevices, ScopesInTheGraphAndColocation) {
  const auto session = Open();
  const auto model = LoadNetwork(*session, "/device:" + Second(), StoredDevices::kRespect);
  EXPECT_EQ(DeviceOf(*model, Where(*model, "product")), Full(Second()));
  EXPECT_EQ(DeviceOf(*model, Where(*model, "root")), Full(First()));
  ExpectRight(model->Run(Feeds()));
  const auto absent = LoadNetwork(*session, "/device:GPU:7", StoredDevices::kRespect);
  EXPECT_THAT(Message(absent->Run(Feeds()).status()),
              HasSubstr("explicitly assigned to /device:GPU:7 but available devices are"));

  // Root belongs to product, wherever that is.
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{2, 3}), "x");
  const auto a = g.Op("Exp", {x}, {}, "a");
  g.Op("Sqrt", {a}, {{"_class", std::vector<std::string>{"loc:@a"}}}, "b");
  const auto together = *session->LoadGraph(g.GraphDef().value(), "together", {});
  ASSERT_TRUE(together->Place({{.nodes = "a", .device = Second()}}).ok());
  NodePlacement placed = Where(*together, "b");
  EXPECT_EQ(DeviceOf(*together, placed), Full(Second()));
  EXPECT_EQ(placed.reason, PlacementReason::kColocated);
  EXPECT_EQ(placed.detail, "with 'a'");
}

TEST_P(SessionDevices, MissingDevicesAreRelaxedOrRefused) {
  const auto session = Open();
  const auto model = LoadNetwork(*session);
  ASSERT_TRUE(model->Place({{.nodes = "root", .device = "/device:GPU:9"}}).ok());
  EXPECT_THAT(told_, HasSubstr("network: placement: nodes 'root': "));
  EXPECT_THAT(told_, HasSubstr("GPU:9"));
  EXPECT_THAT(told_, HasSubstr("; they are placed as if nothing had been asked\n"));
  EXPECT_EQ(Where(*model, "root").reason, PlacementReason::kRelaxed);
  ExpectRight(model->Run(Feeds()));
  EXPECT_EQ(CodeOf(model->Place({{.nodes = "root", .device = "/gpu:x"}})), Code::kInvalidArgument);
  SessionOptions options;
  options.strict = true;
  const auto strict = Open(options);
  EXPECT_EQ(CodeOf(LoadNetwork(*strict)->Place({{.nodes = "root", .device = "/device:GPU:9"}})),
            Code::kNotFound);
}

TEST_P(SessionDevices, RequestsThatMatchNothingAreTold) {
  const auto session = Open();
  const auto model = LoadNetwork(*session);
  ASSERT_TRUE(model
                  ->Place({{.nodes = "prodct*", .device = Second()},
                           {.op = "MatMull", .device = Second()},
                           {.nodes = "relu", .op = "Sqrt", .device = Second()},
                           {.nodes = "w", .device = First()},
                           {.nodes = "relu", .device = First()},
                           {.op = "Add", .device = First()},
                           {.nodes = "no such node anywhere", .device = First()}})
                  .ok());
  EXPECT_EQ(told_, "") << "nodes are known when the graph is";
  ExpectRight(model->Run(Feeds()));
  EXPECT_EQ(told_,
            "network: placement: nodes 'prodct*' match no node; did you mean 'product'?\n"
            "network: placement: nodes of type MatMull match no node; did you mean 'MatMul'?\n"
            "network: placement: nodes 'relu' of type Sqrt match no node; did you mean 'Sqrt'?\n"
            "network: placement: nodes 'no such node anywhere' match no node\n");
  told_.clear();
  RunRequest elsewhere = Feeds();
  elsewhere.device = Second();
  ExpectRight(model->Run(elsewhere));
  ASSERT_TRUE(model->Place({{.nodes = "product", .device = Second()}}).ok());
  ExpectRight(model->Run(Feeds()));
  EXPECT_EQ(told_, "") << "told once";
}

TEST_P(SessionDevices, DevicesOfOptionsThatAreNotThereAreTold) {
  SessionOptions options;
  options.device_memory[First()].reserve_bytes = 1 << 20;
  options.device_memory["GPU"].reserve_bytes = 1 << 20;
  options.device_memory["/device:" + std::string(GetParam()) + ":9"].reserve_bytes = 1 << 20;
  options.fallback.on = {FallbackCause::kDeviceLost};
  options.fallback.chain = {First(), "gpu:99", "cpu"};
  const auto session = Open(options);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(warnings_, 2) << told_;
  EXPECT_THAT(told_, HasSubstr(StrCat("device_memory: '/device:", GetParam(), ":9' is not there")));
  EXPECT_THAT(told_, HasSubstr("There is: CPU:0 ("));
  EXPECT_THAT(told_, HasSubstr("fallback: there is no device 'gpu:99'; available: CPU:0 ("));
  EXPECT_EQ(session->memory().Devices().size(), std::string(GetParam()) == "CPU" ? 1u : 2u);

  options = {};
  options.fallback.chain = {"banana"};
  RuntimeOptions quiet;
  const Status refused = Session::Create(Runtime::Create(quiet), options).status();
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("fallback: 'banana' is not a device name. There is: "));
}

TEST_P(SessionDevices, LimitsAboveTheDeviceAreRefused) {
  const auto session = Open();
  const Status refused = session->memory().SetLimit(First(), int64_t{1} << 60);
  EXPECT_EQ(CodeOf(refused), Code::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr(StrCat("memory of '", First(),
                                                 "': the limit is 1152921504606846976 bytes; the "
                                                 "device has ")));
  for (const DeviceMemory& memory : session->memory().Devices()) {
    if (memory.device != Full(First())) continue;
    EXPECT_EQ(memory.limit_bytes, 64 << 20);
  }
  SessionOptions options;
  options.device = First();
  options.device_memory[First()].limit_bytes = int64_t{1} << 60;
  RuntimeOptions runtime = RuntimeOptionsFromEnvironment();
  runtime.opencl_cpu_devices = true;
  const Status named = Session::Create(Runtime::Create(runtime), options).status();
  EXPECT_EQ(CodeOf(named), Code::kInvalidArgument);
  EXPECT_THAT(Message(named), HasSubstr(StrCat("device_memory of '", First(), "': the limit is ")));
}

TEST_P(SessionDevices, GoesOnElsewhereWhenMemoryIsShort) {
  SessionOptions options;
  options.logical_devices = {{First(), 100}, {First(), 32 << 20}};
  options.fallback.on = {FallbackCause::kLoadOutOfMemory, FallbackCause::kRunOutOfMemory};
  options.fallback.chain = {"gpu:5", First(), Second()};
  const auto session = Open(options);
  const auto model = LoadNetwork(*session);
  auto result = model->Run(Feeds());
  ExpectRight(result);
  ASSERT_EQ(result->report.fallbacks.size(), 1u);
  EXPECT_EQ(result->report.fallbacks[0].device, Full(First()));
  EXPECT_EQ(result->report.fallbacks[0].why.code(), Code::kResourceExhausted);
  EXPECT_THAT(result->report.Line(), HasSubstr("not on " + First()));
  EXPECT_EQ(result->report.devices[static_cast<size_t>(result->report.preferred)], Full(Second()));
  // Without a fallback policy the failure is returned.
  RunRequest request = Feeds();
  request.fallback = FallbackPolicy{};
  EXPECT_EQ(CodeOf(model->Run(request)), Code::kResourceExhausted);
}

TEST_P(SessionDevices, WhatADeviceHasNoRoomForIsFoundOutOnce) {
  SessionOptions options;
  options.logical_devices = {{First(), 100}, {First(), 32 << 20}};
  options.fallback.on = {FallbackCause::kLoadOutOfMemory, FallbackCause::kRunOutOfMemory};
  options.fallback.chain = {Second()};
  const auto session = Open(options);
  const auto model = LoadNetwork(*session);
  int64_t compiled = 0;
  for (int i = 0; i < 5; ++i) {
    auto result = model->Run(Feeds());
    ExpectRight(result);
    ASSERT_EQ(result->report.fallbacks.size(), 1u) << "each run must report it";
    EXPECT_EQ(result->report.fallbacks[0].why.code(), Code::kResourceExhausted);
    if (i == 0) compiled = model->executables().counters().graphs_compiled;
    EXPECT_EQ(model->executables().counters().graphs_compiled, compiled);
    EXPECT_EQ(warnings_, 1);
  }
  // With more free memory the first device is tried again.
  ASSERT_TRUE(session->memory().SetLimit(First(), 16 << 20).ok());
  auto result = model->Run(Feeds());
  ExpectRight(result);
  EXPECT_TRUE(result->report.fallbacks.empty());
}

TEST_P(SessionDevices, ADeviceThatIsNotThere) {
  SessionOptions options;
  options.device = "gpu:7";
  options.fallback.on = {FallbackCause::kNoDevice};
  options.fallback.chain = {Second()};
  const auto session = Open(options);
  auto result = LoadNetwork(*session)->Run(Feeds());
  ExpectRight(result);
  ASSERT_EQ(result->report.fallbacks.size(), 1u);
  EXPECT_EQ(result->report.fallbacks[0].device, "gpu:7");
  EXPECT_EQ(session->device_set().names()[static_cast<size_t>(session->device_set().preferred())],
            Full(Second()));
}

TEST_P(SessionDevices, LostDevicesTakeNoRuns) {
  SessionOptions options;
  options.fallback.on = {FallbackCause::kDeviceLost};
  options.fallback.chain = {Second()};
  const auto session = Open(options);
  const auto model = LoadNetwork(*session);
  ExpectRight(model->Run(Feeds()));
  const auto first = static_cast<size_t>(session->device_set().preferred());
  session->device_set().MarkLost(first, Error(Code::kUnavailable, "unplugged"));
  auto result = model->Run(Feeds());
  ExpectRight(result);
  ASSERT_EQ(result->report.fallbacks.size(), 1u);
  EXPECT_THAT(Message(result->report.fallbacks[0].why), HasSubstr("is lost: unplugged"));
  RunRequest request = Feeds();
  request.fallback = FallbackPolicy{};
  EXPECT_EQ(CodeOf(model->Run(request)), Code::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SessionDevices, ::testing::Values("CPU", "GPU"),
                         [](const auto& info) { return std::string(info.param); });

// Two independent chains of products, on two parts of a device whose steps take some time: some
// step of one must run while some step of the other does.
TEST(SeveralDevices, ComputeAtTheSameTime) {
  const auto script = testing::NewFarScript();
  RuntimeOptions runtime;
  runtime.threads = 2;
  runtime.more_backends = {testing::FarBackend()};
  SessionOptions options;
  options.device = "gpu:0";
  options.logical_devices = {{"GPU:0"}, {"GPU:0"}};
  auto session = Session::Create(Runtime::Create(runtime), options);
  ASSERT_TRUE(session.ok()) << session.status();
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{1, 2}), "x");
  for (const float factor : {1.0f, 2.0f}) {
    const auto turn = g.Constant(Floats({2, 2}, {0, factor, factor, 0}));
    auto y = x;
    for (int i = 0; i < 5; ++i)
      y = g.Op("MatMul", {y, turn}, {}, StrCat(factor == 1 ? "a" : "b", i));
  }
  auto model = (*session)->LoadGraph(g.GraphDef().value(), "chains", {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE((*model)->Place({{.nodes = "b?", .device = "GPU:1"}}).ok());
  RunRequest request;
  request.feeds = {{"x:0", Floats({1, 2}, {3, 5})}};
  request.fetches = {"a4:0", "b4:0"};
  ASSERT_TRUE((*model)->Prepare(request).ok());
  script->step_us = 10000;
  auto result = (*model)->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].second.As<float>()[0], 5);
  EXPECT_EQ(result->outputs[1].second.As<float>()[0], 5 * 32);
  int together = 0;
  const auto spans = script->Spans();
  for (const auto& a : spans) {
    for (const auto& b : spans) {
      if (&a == &b || a.kind != 's' || b.kind != 's') continue;
      together += a.begin_ns <= b.begin_ns && b.begin_ns < a.end_ns;
    }
  }
  EXPECT_GT(together, 0);
}

TEST(Patterns, StarsAndQuestionMarks) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("conv*", "conv1/Conv2D"));
  EXPECT_TRUE(MatchesPattern("*/Conv?D", "a/b/Conv2D"));
  EXPECT_TRUE(MatchesPattern("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(MatchesPattern("conv", "conv1"));
  EXPECT_FALSE(MatchesPattern("a*b*c", "a-c-b"));
  EXPECT_FALSE(MatchesPattern("?", ""));
}

}  // namespace
}  // namespace oncilla
