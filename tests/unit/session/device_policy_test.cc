// Which device a session uses, what may fall back from it, and how its memory grows: options whose
// effect shows with several devices, or with one that refuses something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/import/graph_builder.h"
#include "engine/placement/device_name.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/far_device.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

// y = sqrt(x @ w) with 2 x 2 by 2 x 2.
std::string Network() {
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(Shape{2, 2}), "x");
  const auto w =
      g.Constant(Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{1, 2, 3, 4}), "w");
  g.Op("Sqrt", {g.Op("MatMul", {x, w}, {}, "product")}, {}, "root");
  return g.GraphDef().value();
}

RunRequest Feeds() {
  RunRequest request;
  request.feeds = {{"x:0", Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{1, 0, 0, 1})}};
  request.fetches = {"root:0"};
  return request;
}

// Two GPUs of one kind.
const Backend* TwoGpus() {
  static const Backend backend = [] {
    Backend two = *testing::FarBackend();
    two.discover = [](const DiscoverOptions& options, std::vector<std::string>& notes) {
      std::vector<DeviceInfo> found = testing::FarBackend()->discover(options, notes);
      found.push_back(found[0]);
      found[1].id = "far too";
      return found;
    };
    return two;
  }();
  return &backend;
}

class DevicePolicies : public ::testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.threads = 1;
    options.more_backends = {TwoGpus()};
    runtime_ = Runtime::Create(options);
    if (!runtime_->Resolve("GPU:1").ok() || runtime_->Resolve("GPU:2").ok()) {
      GTEST_SKIP() << "not run: other GPUs than the test's own";
    }
  }
  std::shared_ptr<Session> Open(DevicePolicy policy, const std::string& device = "auto") {
    SessionOptions options;
    options.device = device;
    options.device_policy = policy;
    auto session = Session::Create(runtime_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *session;
  }
  static std::string On(const std::shared_ptr<Session>& session) {
    const DeviceSet& devices = session->device_set();
    return ShortDeviceName(devices.names()[static_cast<size_t>(devices.preferred())]);
  }
  std::shared_ptr<Runtime> runtime_;
};

TEST_F(DevicePolicies, LeastLoadedLooksAtSessionsAndMemory) {
  EXPECT_EQ(On(Open(DevicePolicy::kFirst)), "GPU:0");
  const auto first = Open(DevicePolicy::kLeastLoaded);
  EXPECT_EQ(On(first), "GPU:0");
  auto second = Open(DevicePolicy::kLeastLoaded, "gpu");
  EXPECT_EQ(On(second), "GPU:1");
  second->Close();  // which somebody still holds
  EXPECT_EQ(On(Open(DevicePolicy::kLeastLoaded)), "GPU:1");
  first->Close();
  // As many sessions on both: memory decides.
  SessionOptions options;
  options.device = "GPU:0";
  options.device_memory["GPU:0"].limit_bytes = 32 << 20;
  options.device_memory["GPU:0"].preallocate_bytes = 16 << 20;
  const auto large = Session::Create(runtime_, options);
  ASSERT_TRUE(large.ok()) << large.status();
  const auto other = Open(DevicePolicy::kFirst, "GPU:1");
  EXPECT_EQ(On(Open(DevicePolicy::kLeastLoaded)), "GPU:1");
  // A device that is named is taken under every policy.
  EXPECT_EQ(On(Open(DevicePolicy::kLeastLoaded, "GPU:0")), "GPU:0");
}

TEST_F(DevicePolicies, RoundRobinTakesTurns) {
  std::vector<std::string> on;
  for (int i = 0; i < 4; ++i) on.push_back(On(Open(DevicePolicy::kRoundRobin)));
  EXPECT_EQ(on, (std::vector<std::string>{"GPU:0", "GPU:1", "GPU:0", "GPU:1"}));
}

// On a device that refuses one op.
TEST(StrictExcept, NamedNodesMayFallBack) {
  const auto script = testing::NewFarScript();
  script->refused_op = "Sqrt";
  RuntimeOptions runtime;
  runtime.threads = 1;
  runtime.more_backends = {testing::FarBackend()};
  std::string told;
  runtime.log = std::make_shared<Log>(
      LogLevel::kWarning, [&](LogLevel, std::string_view text) { told += StrCat(text, "\n"); });
  const auto run = [&](std::vector<std::string> except) {
    SessionOptions options;
    options.device = "gpu:0";
    options.strict = true;
    options.strict_except = std::move(except);
    auto session = Session::Create(Runtime::Create(runtime), options);
    EXPECT_TRUE(session.ok()) << session.status();
    auto model = (*session)->LoadGraph(Network(), "network", {});
    EXPECT_TRUE(model.ok()) << model.status();
    return (*model)->Run(Feeds());
  };
  const auto refused = run({});
  EXPECT_EQ(refused.status().code(), Code::kUnimplemented) << refused.status();
  EXPECT_EQ(Details(refused.status()).node, "root");
  EXPECT_EQ(run({"op:MatMul", "product"}).status().code(), Code::kUnimplemented);
  for (const char* entry : {"op:Sqrt", "root", "r??t"}) {
    const auto result = run({entry});
    ASSERT_TRUE(result.ok()) << entry << ": " << result.status();
    EXPECT_EQ(result->report.refusals.size(), 1u);
  }
  EXPECT_THAT(told, ::testing::Not(HasSubstr("strict_except")));
  EXPECT_FALSE(run({"rot", "op:Sqr"}).ok());
  EXPECT_THAT(told, HasSubstr("network: strict_except: nodes 'rot' match no node"));
  EXPECT_THAT(told, HasSubstr("'root'"));
  EXPECT_THAT(told, HasSubstr("'Sqrt'"));
}

// By its own options: a user who hid the GPUs, or named the CPU, needs no warning.
TEST(AutoWithoutGpu, IsToldOnce) {
  std::string told;
  RuntimeOptions options;
  options.threads = 1;
  options.log = std::make_shared<Log>(
      LogLevel::kWarning, [&](LogLevel, std::string_view text) { told += StrCat(text, "\n"); });
  const auto runtime = Runtime::Create(options);
  if (runtime->Resolve("gpu").ok()) GTEST_SKIP() << "not run: there is a GPU";
  SessionOptions session;
  session.device = "cpu";
  ASSERT_TRUE(Session::Create(runtime, session).ok());
  session.device = "auto";
  session.device_count["GPU"] = 0;
  ASSERT_TRUE(Session::Create(runtime, session).ok());
  EXPECT_EQ(told, "");
  session.device_count.clear();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Session::Create(runtime, session).ok());
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_THAT(told, HasSubstr("no GPU was found, so the CPU runs everything: "));
}

TEST(GrowthSchedule, RegionsAreAsLargeAsAsked) {
  const auto script = testing::NewFarScript();
  RuntimeOptions runtime;
  runtime.threads = 1;
  runtime.more_backends = {testing::FarBackend()};
  const auto taken = [&](int64_t first_bytes) {
    SessionOptions options;
    options.device = "gpu:0";
    options.device_memory["GPU:0"].growth_first_bytes = first_bytes;
    auto session = Session::Create(Runtime::Create(runtime), options);
    EXPECT_TRUE(session.ok()) << session.status();
    auto model = (*session)->LoadGraph(Network(), "network", {});
    EXPECT_TRUE(model.ok() && (*model)->Run(Feeds()).ok());
    return (*session)->memory().Devices()[1].pool_bytes;
  };
  EXPECT_LT(taken(0), 64 << 10);  // to size
  const int64_t regions = taken(3 << 20);
  EXPECT_GE(regions, 3 << 20);
  EXPECT_EQ(regions % (3 << 20), 0);
}

}  // namespace
}  // namespace oncilla
