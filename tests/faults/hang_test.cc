// Time limits must hold while the driver makes no progress: the layer blocks its queues by an event
// that is never completed, in each phase of a run, or makes its compilations slow. Tests only the
// public behaviour of sessions: how long the caller waits, which error it gets, and that the
// session works afterwards.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/faults/fault_layer.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kSlack(200);  // beyond a limit

const FaultControl* Faults() {
  static const FaultControl* const control = []() -> const FaultControl* {
    const char* path = std::getenv("OPENCL_LAYERS");
    void* layer = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (layer == nullptr) return nullptr;
    return reinterpret_cast<const FaultControl* (*)()>(dlsym(layer, "oncilla_faults"))();
  }();
  return control;
}

// Rows of 64 numbers through alternating products and softmaxes; the arena grows with the batch.
std::string Net(int seed, int nodes = 3) {
  testing::OnnxGraphText graph;
  graph.Input("x", {"n", 64}).Output("y", {"n", 64});
  std::vector<float> weights(64 * 64);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>((i + static_cast<size_t>(seed)) % 13) / 13 - 0.4f;
  }
  graph.Floats("w", {64, 64}, weights);
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string next = i + 1 == nodes ? "y" : StrCat("v", i);
    if (i % 2 == 0) graph.Node({"MatMul", {last, "w"}, {next}, next});
    if (i % 2 == 1) graph.Node({"Softmax", {last}, {next}, next});
    last = next;
  }
  return testing::OnnxModelText(graph);
}

class Hang : public ::testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.opencl_cpu_devices = true;
    options.threads = 2;
    options.cache_dir = folder_.path() + "/programs";
    runtime_ = Runtime::Create(options);
    const auto gpu = runtime_->Resolve("gpu");
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    ASSERT_NE(Faults(), nullptr) << "set OPENCL_LAYERS to the layer's path";
    Faults()->reset();
    live_bytes_ = Faults()->live_bytes();  // what other tests gave up
    alarm(60);
  }
  void TearDown() override {
    if (Faults() != nullptr) Faults()->block(0), Faults()->reset();
    model_ = nullptr;
    if (session_ != nullptr) session_->Close();
    alarm(0);
  }

  // A new session; `seed` makes another model, with other weights and the same kernels.
  void Open(SessionOptions options = {}, int seed = 0) {
    options.device = "gpu";
    auto session = Session::Create(runtime_, options);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
    Load(seed);
  }
  void Load(int seed) {
    auto model = session_->Load(folder_.Write(StrCat("net", seed, ".onnx"), Net(seed)), {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  // Compiles the kernels, so that compilation is not part of the measurement.
  void WarmUp(int64_t rows = 3) {
    const auto ran = model_->Run(Rows(rows));
    ASSERT_TRUE(ran.ok()) << ran.status();
  }
  static RunRequest Rows(int64_t rows, milliseconds timeout = milliseconds(0)) {
    RunRequest request;
    const std::vector<float> values(static_cast<size_t>(rows * 64), 0.5f);
    request.feeds = {{"x", Tensor::Of<float>(DType::kF32, {rows, 64}, values)}};
    request.timeout = timeout;
    return request;
  }
  // Runs with a limit that it must keep, and with a cancellation after so long.
  void ExpectToEnd(int64_t rows, const char* phase) {
    constexpr milliseconds kLimit(300);
    auto begin = Clock::now();
    Status status = model_->Run(Rows(rows, kLimit)).status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << phase << ": " << status;
    EXPECT_LT(Clock::now() - begin, kLimit + kSlack) << phase;
    RunRequest request = Rows(rows);
    request.cancel = CancellationToken::Create();
    const auto later = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(kLimit);
      request.cancel.Cancel();
    });
    begin = Clock::now();
    status = model_->Run(request).status();
    EXPECT_EQ(status.code(), Code::kCancelled) << phase << ": " << status;
    EXPECT_LT(Clock::now() - begin, kLimit + kSlack) << phase;
  }
  // An asynchronous run, during which the session is closed without waiting.
  void ExpectToClose(int64_t rows, const char* phase) {
    constexpr milliseconds kLimit(1000);
    const auto run = model_->RunAsync(Rows(rows));
    ASSERT_TRUE(run.ok()) << run.status();
    std::this_thread::sleep_for(milliseconds(100));
    const auto begin = Clock::now();
    session_->Close({CloseMode::kCancel, kLimit});
    EXPECT_LT(Clock::now() - begin, kLimit + kSlack) << phase;
    const Status status = run->Take().status();
    EXPECT_EQ(status.code(), Code::kCancelled) << phase << ": " << status;
  }

  long long live_bytes_ = 0;
  const testing::TemporaryFolder folder_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> model_;
};

TEST_F(Hang, LimitsHoldInAFirstRun) {
  Open();
  WarmUp();
  Load(1);  // its constants are to come
  Faults()->block(1);
  ExpectToEnd(3, "first run");
  ExpectToClose(3, "first run");
}

TEST_F(Hang, LimitsHoldWhileMemoryGrows) {
  Open();
  WarmUp(3);
  WarmUp(30'000);  // the kernels of long batches
  session_->memory().Trim();
  Faults()->block(1);
  ExpectToEnd(30'000, "growth");
  ExpectToClose(30'000, "growth");
}

TEST_F(Hang, LimitsHoldInAWarmRun) {
  Open();
  WarmUp();
  Faults()->block(1);
  ExpectToEnd(3, "warm");
  ExpectToClose(3, "warm");
}

TEST_F(Hang, DrainingThatTakesTooLongEndsInTime) {
  Open();
  WarmUp();
  Faults()->block(1);
  const auto run = model_->RunAsync(Rows(3));
  ASSERT_TRUE(run.ok());
  const auto begin = Clock::now();
  session_->Close({CloseMode::kDrain, milliseconds(400)});
  EXPECT_LT(Clock::now() - begin, milliseconds(400) + kSlack);
  EXPECT_EQ(run->Take().status().code(), Code::kCancelled);
}

TEST_F(Hang, TheNextRunIsRightOnceTheDeviceGoesOn) {
  Open();
  WarmUp();
  const auto right = model_->Run(Rows(5));
  ASSERT_TRUE(right.ok());
  session_->memory().Trim();
  Faults()->block(1);
  ExpectToEnd(5, "then well");
  Faults()->block(0);
  const auto after = model_->Run(Rows(5));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->outputs[0].second.As<float>()[7], right->outputs[0].second.As<float>()[7]);
  model_ = nullptr;
  session_->Close();
  EXPECT_EQ(Faults()->live_bytes(), live_bytes_) << "memory of late work must be freed too";
}

TEST_F(Hang, UploadsAndReadsEnd) {
  Open(SessionOptions{.watchdog_ms = 300});
  WarmUp();
  RunRequest request = Rows(3);
  request.keep_all = true;
  const auto kept = model_->Run(request);
  ASSERT_TRUE(kept.ok()) << kept.status();
  Faults()->block(1);
  auto begin = Clock::now();
  EarlyEnd end;
  end.deadline = begin + milliseconds(100);
  EXPECT_EQ(kept->kept[0].Read(end).status().code(), Code::kDeadlineExceeded);
  EXPECT_LT(Clock::now() - begin, milliseconds(100) + kSlack);
  begin = Clock::now();
  const Status upload = session_->device_set().ToDevice(Rows(4000).feeds[0].second, "gpu").status();
  EXPECT_EQ(upload.code(), Code::kUnavailable) << upload;
  EXPECT_LT(Clock::now() - begin, milliseconds(300) + kSlack);
  begin = Clock::now();
  EXPECT_THAT(std::string(Message(model_->Run(Rows(3)).status())), HasSubstr("is lost"));
  EXPECT_LT(Clock::now() - begin, kSlack) << "a lost device is not tried again";
  begin = Clock::now();
  session_->Close();
  EXPECT_LT(Clock::now() - begin, kSlack) << "closing must not wait for it";
}

// With a fallback, and the behaviour of the next run.
void ExpectToGoOn(Model& model, const RunRequest& request, milliseconds watchdog) {
  auto begin = Clock::now();
  const auto ran = model.Run(request);
  ASSERT_TRUE(ran.ok()) << ran.status();
  ASSERT_EQ(ran->report.fallbacks.size(), 1u);
  EXPECT_EQ(ran->report.fallbacks[0].why.code(), Code::kUnavailable) << ran->report.Line();
  EXPECT_LT(Clock::now() - begin, watchdog + kSlack + milliseconds(300));
  begin = Clock::now();
  EXPECT_TRUE(model.Run(request).ok());
  EXPECT_LT(Clock::now() - begin, kSlack) << "the next run does not wait again";
}

TEST_F(Hang, TheWatchdogAndFallbacksHoldInAFirstRunAndWhileMemoryGrows) {
  constexpr milliseconds kWatchdog(400);
  SessionOptions options{.watchdog_ms = kWatchdog.count()};
  options.fallback = {.on = {FallbackCause::kDeviceLost}, .chain = {"cpu"}};
  Open(options);
  WarmUp(3);
  WarmUp(30'000);
  session_->memory().Trim();
  Faults()->block(1);
  ExpectToGoOn(*model_, Rows(30'000), kWatchdog);
  Faults()->block(0);
  session_->Close();
  Open(options, 1);
  Faults()->block(1);
  ExpectToGoOn(*model_, Rows(3), kWatchdog);
}

// NVIDIA's driver allows about 1024 launches in its queue: enqueueing more blocks in the driver,
// where no time limit holds.
TEST_F(Hang, ALongRunDoesNotFillTheQueueOfADriverThatHangs) {
  constexpr milliseconds kWatchdog(400);
  SessionOptions options{.watchdog_ms = kWatchdog.count()};
  options.fallback = {.on = {FallbackCause::kDeviceLost}, .chain = {"cpu"}};
  options.device = "gpu";
  const auto session = Session::Create(runtime_, options);
  ASSERT_TRUE(session.ok()) << session.status();
  session_ = *session;
  const auto loaded = session_->Load(folder_.Write("long.onnx", Net(0, 2000)), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  model_ = *loaded;
  WarmUp();
  const long before = Faults()->count("EnqueueNDRangeKernel");
  WarmUp();
  ASSERT_GT(Faults()->count("EnqueueNDRangeKernel") - before, 1500);
  Faults()->queue_room(1000);
  Faults()->block(1);
  ExpectToGoOn(*model_, Rows(3), kWatchdog);
}

TEST_F(Hang, WorkThatStaysLateMakesTheDeviceLost) {
  Open(SessionOptions{.watchdog_ms = 500});
  WarmUp();
  Faults()->block(1);
  EXPECT_EQ(model_->Run(Rows(3, milliseconds(100))).status().code(), Code::kDeadlineExceeded);
  std::this_thread::sleep_for(milliseconds(600));
  const auto begin = Clock::now();
  const Status next = model_->Run(Rows(3, milliseconds(3000))).status();
  EXPECT_EQ(next.code(), Code::kUnavailable) << next;
  EXPECT_LT(Clock::now() - begin, kSlack);
}

TEST_F(Hang, ARunDoesNotWaitForAnotherThatTakesMemory) {
  Open();
  WarmUp(3);
  WarmUp(30'000);
  session_->memory().Trim();
  Faults()->block(1);
  RunRequest first = Rows(30'000);
  first.cancel = CancellationToken::Create();
  const auto other = std::async(std::launch::async, [&] { return model_->Run(first).status(); });
  std::this_thread::sleep_for(milliseconds(50));
  const auto begin = Clock::now();
  EXPECT_EQ(model_->Run(Rows(30'000, milliseconds(100))).status().code(), Code::kDeadlineExceeded);
  EXPECT_GT(session_->memory().Report().size(), 0u);
  EXPECT_LT(Clock::now() - begin, milliseconds(100) + kSlack);
  first.cancel.Cancel();
}

TEST_F(Hang, ACompilationGoesOnBehindARunThatEnds) {
  Open();
  const long probes = Faults()->count("BuildProgram");
  Faults()->slow_build(1500);
  auto begin = Clock::now();
  const Status status = model_->Run(Rows(3, milliseconds(100))).status();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status;
  EXPECT_LT(Clock::now() - begin, milliseconds(100) + kSlack);
  // Repeated runs with the same limit compile one kernel after another.
  Result<RunResult> ran = status;
  for (int i = 0; i < 200 && !ran.ok(); ++i) {
    begin = Clock::now();
    ran = model_->Run(Rows(3, milliseconds(100)));
    ASSERT_LT(Clock::now() - begin, milliseconds(100) + kSlack);
  }
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(Faults()->count("BuildProgram") - probes,
            model_->executables().counters().kernels_built)
      << "each kernel must be built once";
}

TEST_F(Hang, ASessionClosesWhileItsKernelsAreCompiled) {
  Open();
  Faults()->slow_build(3000);
  ExpectToClose(3, "compilation");
  EXPECT_EQ(session_->memory().Devices()[1].pool_bytes, 0);
}

TEST_F(Hang, ACompilationThatTakesLongerThanTheWatchdogLosesTheDevice) {
  constexpr milliseconds kWatchdog(400);
  SessionOptions options{.watchdog_ms = kWatchdog.count()};
  options.fallback = {.on = {FallbackCause::kDeviceLost}, .chain = {"cpu"}};
  Open(options);
  Faults()->slow_build(3000);
  ExpectToGoOn(*model_, Rows(3), kWatchdog);
}

}  // namespace
}  // namespace oncilla
