// Overlapping runs: one model from several threads, several sessions on one Runtime, unloading and
// closing while others run. Every result must equal that of a run alone, bit for bit. Also built
// with ThreadSanitizer (thread_tests).
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "engine/session/model.h"
#include "engine/session/runtime.h"
#include "engine/session/session.h"
#include "tests/unit/support/sanitized.h"

namespace oncilla {
namespace {

const std::string kModels = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/";
constexpr int kThreads = 4;
constexpr int kRounds = 16;  // few enough for ThreadSanitizer

std::shared_ptr<Runtime> MakeRuntime() {
  RuntimeOptions options = RuntimeOptionsFromEnvironment();
  options.opencl_cpu_devices = true;
  options.threads = 3;
  return Runtime::Create(options);
}

std::shared_ptr<Session> Open(const std::shared_ptr<Runtime>& runtime,
                              const std::string& device = "cpu") {
  SessionOptions options;
  options.device = device;
  options.max_concurrent_runs = 2;  // fewer than threads, so that some wait
  auto session = Session::Create(runtime, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *session : nullptr;
}

std::shared_ptr<Model> LoadMlp(const std::shared_ptr<Session>& session) {
  auto model = session->Load(kModels + "mlp", {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

// `rows` rows whose numbers depend on `seed`.
Tensor Rows(int64_t rows, int seed) {
  std::vector<float> values(static_cast<size_t>(rows * 6));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 13) % 29) * 0.1f - 1.4f;
  }
  return Tensor::Of<float>(DType::kF32, {rows, 6}, values);
}

Result<Tensor> RunMlp(Model& model, const Tensor& in) {
  RunRequest request;
  request.feeds = {{model.source().signatures()[0].inputs[0].name, in}};
  ONCILLA_ASSIGN(RunResult result, model.Run(request));
  return result.outputs[0].second;
}

bool Same(const Tensor& a, const Tensor& b) {
  return a.desc() == b.desc() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

void InThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

// Threads run their own sequences of batch sizes; the results must be those of a session used
// alone.
void OneModelFromManyThreads(const std::string& device) {
  const auto runtime = MakeRuntime();
  std::vector<Tensor> alone;
  {
    const auto session = Open(runtime, device);
    const auto model = LoadMlp(session);
    for (int64_t rows = 1; rows <= 5; ++rows)
      alone.push_back(RunMlp(*model, Rows(rows, 1)).value());
  }
  const auto session = Open(runtime, device);
  const auto model = LoadMlp(session);
  std::atomic<int> wrong{0};
  InThreads(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const int64_t rows = (round * (thread + 1)) % 5 + 1;
      auto out = RunMlp(*model, Rows(rows, 1));
      if (!out.ok() || !Same(*out, alone[static_cast<size_t>(rows - 1)])) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(model->executables().counters().graphs_compiled,
            1);  // although all of them came at once
  EXPECT_GT(session->Close().bytes, 0);
  EXPECT_EQ(session->memory().Devices().back().in_use_bytes, 0);
}

TEST(SessionThreads, OneModelFromManyThreads) { OneModelFromManyThreads("cpu"); }

TEST(SessionThreads, OneModelFromManyThreadsOnOpenCl) {
  const auto runtime = MakeRuntime();
  if (!runtime->Resolve("gpu").ok()) {
    GTEST_SKIP() << "not run: no OpenCL (" << runtime->Resolve("gpu").status() << ")";
  }
  OneModelFromManyThreads("gpu");
}

TEST(SessionThreads, EightThreadsTenThousandRunsEach) {
  constexpr int kRuns = kSanitized ? 100 : 10000;
  const auto runtime = MakeRuntime();
  const auto session = Open(runtime);
  const auto model = LoadMlp(session);
  std::vector<Tensor> in, alone;
  for (int64_t rows = 1; rows <= 5; ++rows) {
    in.push_back(Rows(rows, 1));
    alone.push_back(RunMlp(*model, in.back()).value());
  }
  std::atomic<int> wrong{0};
  InThreads(8, [&](int thread) {
    for (int run = 0; run < kRuns; ++run) {
      const size_t which = static_cast<size_t>(run * (thread + 1)) % in.size();
      auto out = RunMlp(*model, in[which]);
      wrong += !out.ok() || !Same(*out, alone[which]);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(model->executables().counters().plans_made, 5);
}

TEST(SessionThreads, EightThreadsAHundredRunsEachOfARealModel) {
  constexpr int kRuns = kSanitized ? 2 : 100;
  const auto session = Open(MakeRuntime());
  auto model = session->Load(
      std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto run = [&](int seed) -> Result<Tensor> {
    Tensor image = Tensor::Allocate({DType::kU8, {1, 224, 224, 3}}).value();
    auto bytes = image.mutable_bytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(seed) * 7);
    }
    RunRequest request;
    request.feeds = {{"image", image}};
    request.fetches = {"logits"};
    ONCILLA_ASSIGN(RunResult result, (*model)->Run(request));
    return result.outputs[0].second;
  };
  std::vector<Tensor> alone;
  for (int seed = 0; seed < 3; ++seed) alone.push_back(run(seed).value());
  std::atomic<int> wrong{0};
  InThreads(8, [&](int thread) {
    for (int i = 0; i < kRuns; ++i) {
      const int seed = (i + thread) % 3;
      auto out = run(seed);
      wrong += !out.ok() || !Same(*out, alone[static_cast<size_t>(seed)]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

// They share the Runtime's thread pool and nothing else.
TEST(SessionThreads, SessionsOfOneRuntime) {
  const auto runtime = MakeRuntime();
  const Tensor in = Rows(3, 2);
  const Tensor alone = RunMlp(*LoadMlp(Open(runtime)), in).value();
  std::atomic<int> wrong{0};
  InThreads(kThreads, [&](int) {
    for (int round = 0; round < kRounds / 4; ++round) {
      const auto session = Open(runtime);
      const auto model = LoadMlp(session);
      for (int i = 0; i < 3; ++i) {
        auto out = RunMlp(*model, in);
        if (!out.ok() || !Same(*out, alone)) ++wrong;
      }
      session->Close();
    }
  });
  EXPECT_EQ(wrong, 0);
}

// One name is one pool, as long as a session has it; sessions without a name share the runtime's or
// have one of their own.
TEST(SessionThreads, PoolsByName) {
  const auto runtime = MakeRuntime();
  const auto open = [&](const std::string& pool, int threads) {
    SessionOptions options;
    options.device = "cpu";
    options.thread_pool = pool;
    options.threads = threads;
    return Session::Create(runtime, options);
  };
  std::shared_ptr<Session> first = open("a", 2).value();
  std::shared_ptr<Session> second = open("a", 0).value();
  EXPECT_EQ(&first->threads(), &second->threads());
  EXPECT_EQ(first->threads().size(), 2);
  EXPECT_NE(&open("b", 2).value()->threads(), &first->threads());
  EXPECT_NE(&open("", 2).value()->threads(), &first->threads());
  EXPECT_EQ(&open("", 0).value()->threads(), &runtime->threads());
  EXPECT_EQ(open("c", 0).value()->threads().size(), 3);
  const auto other = open("a", 4);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_NE(other.status().message().find("'a' is in use with 2 threads, not 4"),
            std::string::npos);

  const Tensor in = Rows(3, 2);
  const Tensor alone = RunMlp(*LoadMlp(Open(runtime)), in).value();
  std::atomic<int> wrong{0};
  InThreads(kThreads, [&](int thread) {
    const auto model = LoadMlp(thread % 2 == 0 ? first : second);
    for (int i = 0; i < kRounds; ++i) {
      auto out = RunMlp(*model, in);
      if (!out.ok() || !Same(*out, alone)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  first.reset();
  second.reset();
  EXPECT_EQ(open("a", 4).value()->threads().size(), 4);
}

// A run either gives the right result or reports that the model is unloaded.
TEST(SessionThreads, UnloadingWaitsForRuns) {
  const auto runtime = MakeRuntime();
  const auto session = Open(runtime);
  const Tensor in = Rows(2, 3);
  const Tensor alone = RunMlp(*LoadMlp(session), in).value();
  for (int round = 0; round < kRounds / 4; ++round) {
    const auto model = LoadMlp(session);
    std::atomic<int> wrong{0}, answered{0};
    InThreads(kThreads, [&](int thread) {
      if (thread == 0) {
        while (answered < 3 && wrong == 0) std::this_thread::yield();
        model->Unload();
        return;
      }
      for (;;) {
        auto out = RunMlp(*model, in);
        (void)model->executables().counters();
        if (!out.ok()) {
          if (out.status().code() != Code::kFailedPrecondition) ++wrong;
          return;
        }
        if (!Same(*out, alone)) ++wrong;
        ++answered;
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(model->executables().counters().constants_packed, 0);
  }
}

TEST(SessionThreads, LoadingIntoASessionThatCloses) {
  const auto runtime = MakeRuntime();
  for (int round = 0; round < kRounds / 4; ++round) {
    const auto session = Open(runtime);
    std::atomic<int> loaded{0};
    InThreads(kThreads, [&](int thread) {
      if (thread == 0) {
        while (loaded < 2) std::this_thread::yield();
        session->Close();
        return;
      }
      for (;;) {
        auto model = session->Load(kModels + "mlp", {});
        if (!model.ok()) {
          EXPECT_EQ(model.status().code(), Code::kFailedPrecondition) << model.status();
          return;
        }
        ++loaded;
        auto out = RunMlp(**model, Rows(1, 1));
        if (out.ok()) continue;
        EXPECT_EQ(out.status().code(), Code::kFailedPrecondition) << out.status();
      }
    });
    EXPECT_EQ(session->memory().Devices().back().in_use_bytes, 0);
  }
}

}  // namespace
}  // namespace oncilla
