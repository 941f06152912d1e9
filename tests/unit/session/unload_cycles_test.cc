// Loading, running and unloading, repeatedly: all memory must be returned, to the driver and to the
// system.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "engine/base/free_memory.h"
#include "engine/session/model.h"
#include "engine/session/runtime.h"
#include "engine/session/session.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/sanitized.h"
#include "tests/unit/support/temporary.h"
#ifdef ONCILLA_OPENCL
#include "backends/opencl/runtime/cl_objects.h"
#endif

namespace oncilla {
namespace {

const std::string kSource = ONCILLA_SOURCE_DIR;

// Sanitizers delay freeing.
constexpr bool kCountsOwnBytes = !kSanitized;
constexpr int kCycles = kSanitized ? 40 : 1000;

// Memory of this process alone: pages of mapped files do not count.
int64_t OwnBytes() {
  ReturnFreeMemory();
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

int64_t DriverObjects() {
#ifdef ONCILLA_OPENCL
  return opencl::CountLiveObjects().total();
#else
  return 0;
#endif
}

class UnloadCycles : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RuntimeOptions options = RuntimeOptionsFromEnvironment();
    options.opencl_cpu_devices = true;
    options.threads = 2;
    runtime_ = Runtime::Create(options);
    if (!runtime_->Resolve(GetParam()).ok()) GTEST_SKIP() << "no device " << GetParam();
  }

  // Zeros for the inputs: one sample, 64 where another size is open.
  static RunRequest RequestFor(const Model& model) {
    RunRequest request;
    for (const TensorInfo& input : model.source().signatures()[0].inputs) {
      Shape shape;
      for (const Dim& dim : input.shape.dims()) {
        shape.push_back(dim.known() ? dim.size : shape.rank() == 0 ? 1 : 64);
      }
      Tensor zeros = Tensor::Allocate({input.dtype, shape}).value();
      std::fill(zeros.mutable_bytes().begin(), zeros.mutable_bytes().end(), std::byte{0});
      request.feeds.emplace_back(input.name, std::move(zeros));
    }
    return request;
  }

  void LoadAndRun(Session& session, const std::string& path, std::shared_ptr<Model>& model) {
    auto loaded = session.Load(kSource + path, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model = *loaded;
    auto result = model->Run(RequestFor(*model));
    ASSERT_TRUE(result.ok()) << result.status();
  }

  // A session that has one model, then another, which goes with it.
  void Cycle(const std::string& first, const std::string& second) {
    SessionOptions options;
    options.device = GetParam();
    auto session = Session::Create(runtime_, options);
    ASSERT_TRUE(session.ok()) << session.status();
    std::shared_ptr<Model> model;
    ASSERT_NO_FATAL_FAILURE(LoadAndRun(**session, first, model));
    int64_t in_use = 0;
    for (const DeviceMemory& memory : (*session)->memory().Devices()) in_use += memory.pool_bytes;
    EXPECT_GT(in_use, 0);
    EXPECT_GT(model->Unload().bytes, 0);
    ASSERT_NO_FATAL_FAILURE(LoadAndRun(**session, second, model));
    EXPECT_GT((*session)->Close().bytes, 0);
    for (const DeviceMemory& memory : (*session)->memory().Devices()) {
      EXPECT_EQ(memory.pool_bytes, 0) << memory.device;
      EXPECT_EQ(memory.in_use_bytes, 0) << memory.device;
    }
  }

  std::shared_ptr<Runtime> runtime_;
};

TEST_P(UnloadCycles, LeaveNothingBehind) {
  const bool cpu = std::string(GetParam()) == "cpu";
  const std::string models = "/testdata/tensorflow/models/";
  const int cycles = cpu ? kCycles : 40;
  int64_t after_ten = 0;
  const int64_t objects = DriverObjects();
  for (int i = 0; i < cycles; ++i) {
    ASSERT_NO_FATAL_FAILURE(Cycle(models + "mlp", models + "encoder"));
    EXPECT_EQ(DriverObjects(), objects);
    if (i == 9) after_ten = OwnBytes();
  }
  // What a driver keeps for itself is not ours to count.
  if (cpu && kCountsOwnBytes) {
    EXPECT_LT(OwnBytes(), after_ten + after_ten / 100 + (1 << 19));
  }
}

TEST_P(UnloadCycles, ARealModelToo) {
  const bool cpu = std::string(GetParam()) == "cpu";
  const std::string model = "/testdata/quickstart/efficientnet_lite0";
  int64_t after_two = 0;
  for (int i = 0; i < (cpu ? 12 : 3); ++i) {
    ASSERT_NO_FATAL_FAILURE(Cycle(model, "/testdata/tensorflow/models/mlp"));
    if (i == 1) after_two = OwnBytes();
  }
  if (cpu && kCountsOwnBytes) {
    EXPECT_LT(OwnBytes(), after_two + after_two / 100 + (1 << 20));
  }
}

TEST_P(UnloadCycles, TrimGivesBackWhatNoRunHoldsAndLimitsChange) {
  SessionOptions options;
  options.device = GetParam();
  auto session = Session::Create(runtime_, options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::shared_ptr<Model> model;
  ASSERT_NO_FATAL_FAILURE(LoadAndRun(**session, "/testdata/quickstart/efficientnet_lite0", model));
  const int used = (*session)->device_set().preferred();
  auto taken = [&] { return (*session)->memory().Devices()[static_cast<size_t>(used)].pool_bytes; };
  const int64_t before = taken();
  const Released released = (*session)->memory().Trim();
  EXPECT_GT(released.by_device[static_cast<size_t>(used)].second, 0);
  EXPECT_EQ(taken(), before - released.by_device[static_cast<size_t>(used)].second);
  EXPECT_GT(taken(), 0);  // the weights
  EXPECT_EQ((*session)->memory().Trim().bytes, 0);

  const std::string name = (*session)->device_set().names()[static_cast<size_t>(used)];
  ASSERT_TRUE((*session)->memory().SetLimit(name, taken() + 1000).ok());
  auto refused = model->Run(RequestFor(*model));
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted) << refused.status();
  ASSERT_TRUE((*session)->memory().SetLimit(GetParam(), 2 * before).ok()) << "by a short name";
  EXPECT_EQ((*session)->memory().Devices()[static_cast<size_t>(used)].limit_bytes, 2 * before);
  auto result = model->Run(RequestFor(*model));
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(taken(), before);
  EXPECT_EQ((*session)->memory().SetLimit("/device:GPU:9", 1).code(), Code::kNotFound);
  EXPECT_EQ((*session)->memory().SetLimit(name, 0).code(), Code::kInvalidArgument);
}

bool IsMapped(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

int64_t DriverContexts() {
#ifdef ONCILLA_OPENCL
  return opencl::CountLiveObjects().contexts;
#else
  return 0;
#endif
}

TEST_P(UnloadCycles, ClosingGivesBackWhatTheDriverAndFilesHoldWhateverHandlesLive) {
  // Files of this size are mapped; smaller ones are read.
  const testing::TemporaryFolder folder;
  testing::OnnxGraphText graph;
  graph.Input("x", {1, 2048}).Output("y", {1, 2560});
  graph.Floats("w", {2048, 2560}, std::vector<float>(2048 * 2560, 0.5f));
  graph.Node({"MatMul", {"x", "w"}, {"y"}, "y"});
  const std::string net = folder.Write("net.onnx", testing::OnnxModelText(graph));
  const bool gpu = std::string(GetParam()) == "gpu";
  const int64_t objects = DriverObjects(), contexts = DriverContexts();
  SessionOptions options;
  options.device = GetParam();
  auto first = *Session::Create(runtime_, options), second = *Session::Create(runtime_, options);
  std::shared_ptr<Model> one, two;
  one = *first->Load(net, {});
  two = *second->Load(net, {});
  ASSERT_TRUE(one->Run(RequestFor(*one)).ok());
  ASSERT_TRUE(two->Run(RequestFor(*two)).ok());
  EXPECT_EQ(DriverContexts(), contexts + (gpu ? 1 : 0)) << "sessions share the device's context";
  EXPECT_TRUE(IsMapped(net));
  first->Close();
  EXPECT_TRUE(two->Run(RequestFor(*two)).ok()) << "closing one session must not affect the other";
  EXPECT_EQ(DriverContexts(), contexts + (gpu ? 1 : 0));
  second->Close();
  EXPECT_EQ(DriverObjects(), objects);
  EXPECT_FALSE(IsMapped(net));
  // The handles still answer.
  EXPECT_FALSE(one->source().signatures().empty());
  EXPECT_EQ(one->Run(RequestFor(*one)).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(one->executables().counters().constant_bytes, 0);
  EXPECT_FALSE(first->device_set().Use("gpu:7").ok());
  EXPECT_GT(first->memory().Report().size(), 0u);
  EXPECT_EQ(first->memory().Devices()[0].pool_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, UnloadCycles, ::testing::Values("cpu", "gpu"));

}  // namespace
}  // namespace oncilla
