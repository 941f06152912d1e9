// Runs on the CPU end while a kernel runs: at their time limit, when cancelled, when their session
// is closed without waiting. The time of a kernel is measured, never assumed. Also built with
// ThreadSanitizer (thread_tests).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "engine/session/model.h"
#include "engine/session/runtime.h"
#include "engine/session/session.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/sanitized.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using std::chrono::milliseconds;
using testing::OnnxGraphText;
using testing::OnnxNodeText;
using Clock = std::chrono::steady_clock;

std::vector<float> Numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * 37 % 101) * 0.01f - 0.5f;
  return out;
}

Tensor Filled(const Shape& shape) {
  return Tensor::Of<float>(DType::kF32, shape, Numbers(shape.elements()));
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.desc() == b.desc() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

// A model of one kernel, the longer the larger its input.
struct Long {
  std::string name;
  std::string model;
  Shape (*input)(int64_t size);
};

Long Product() {
  OnnxGraphText graph;
  graph.Input("x", {"n", 1024}).Output("y", {"n", 1024});
  graph.Floats("w", {1024, 1024}, Numbers(1024 * 1024));
  graph.Node({"MatMul", {"x", "w"}, {"y"}});
  return {"product", OnnxModelText(graph), [](int64_t size) { return Shape{size * 8, 1024}; }};
}

Long Convolution() {
  OnnxGraphText graph;
  graph.Input("x", {1, 64, "h", 64}).Output("y", {1, 64, "h2", "w2"});
  graph.Floats("w", {64, 64, 5, 5}, Numbers(64 * 64 * 25));
  graph.Node({"Conv", {"x", "w"}, {"y"}});
  return {"convolution", OnnxModelText(graph), [](int64_t size) { return Shape{1, 64, size, 64}; }};
}

Long Recurrent() {
  OnnxGraphText graph;
  graph.Input("x", {"steps", 1, 8}).Output("y", {"steps", 1, 1, 512});
  graph.Floats("w", {1, 2048, 8}, Numbers(2048 * 8));
  graph.Floats("r", {1, 2048, 512}, Numbers(2048 * 512));
  graph.Node(OnnxNodeText("LSTM", {"x", "w", "r"}, {"y"}).Int("hidden_size", 512));
  return {"recurrent", OnnxModelText(graph), [](int64_t size) { return Shape{size, 1, 8}; }};
}

Long Sum() {
  OnnxGraphText graph;
  graph.Input("x", {"n", 4096}).Output("y", {});
  graph.Node(OnnxNodeText("ReduceLogSumExp", {"x"}, {"y"}).Int("keepdims", 0));
  return {"sum", OnnxModelText(graph), [](int64_t size) { return Shape{size * 8, 4096}; }};
}

Long Order() {
  OnnxGraphText graph;
  graph.Input("x", {"n"}).Input("k", {1}, 7).Output("y", {"k"}).Output("i", {"k"}, 7);
  graph.Node({"TopK", {"x", "k"}, {"y", "i"}});
  return {"order", OnnxModelText(graph), [](int64_t size) { return Shape{size * 4096}; }};
}

class EarlyEnds : public ::testing::Test {
 protected:
  std::shared_ptr<Session> Open(const std::string& device, const std::string& pool = "") {
    SessionOptions options;
    options.device = device;
    options.threads = 2;
    options.thread_pool = pool;
    auto session = Session::Create(runtime_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : nullptr;
  }
  std::shared_ptr<Model> Load(Session& session, const Long& what) {
    auto model = session.Load(folder_.Write(what.name + ".onnx", what.model), {});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  static RunRequest Request(const Long& what, int64_t size) {
    RunRequest request;
    const Tensor x = Filled(what.input(size));
    request.feeds = {{"x", x}};
    if (what.name == "order") {
      request.feeds.emplace_back("k", Tensor::Int64s(std::vector<int64_t>{x.elements()}));
    }
    return request;
  }
  // The second of two runs: the first one gets things ready.
  static Clock::duration Timed(Model& model, const RunRequest& request, Tensor& result) {
    Clock::duration took{};
    for (int i = 0; i < 2; ++i) {
      const auto begin = Clock::now();
      auto ran = model.Run(request);
      took = Clock::now() - begin;
      EXPECT_TRUE(ran.ok()) << ran.status();
      if (ran.ok()) result = ran->outputs[0].second;
    }
    return took;
  }
  // So large an input that a run takes as long as that, or that it has all that a test may take.
  static int64_t SizeFor(Model& model, const Long& what, milliseconds wanted) {
    constexpr int64_t kMostBytes = 128 << 20;
    int64_t size = 16;
    for (Tensor ignored; Timed(model, Request(what, size), ignored) < wanted; size *= 2) {
      if (HasFailure() || what.input(size).elements() * 4 >= kMostBytes) break;
    }
    return size;
  }

  const testing::TemporaryFolder folder_;
  const std::shared_ptr<Runtime> runtime_ = Runtime::Create({});
};

// If the kernel did not check, a run with a single kernel would take as long as `full`.
TEST_F(EarlyEnds, WhileAKernelIsAtWork) {
  constexpr milliseconds kFull(kSanitized ? 400 : 100), kLimit(10);
  const struct {
    std::string device;
    Long what;
  } kAll[] = {
      {"cpu", Product()},           {"cpu", Convolution()},
      {"cpu", Recurrent()},         {"cpu:plain", Product()},
      {"cpu:plain", Convolution()}, {"cpu:plain", Recurrent()},
      {"cpu:plain", Sum()},         {"cpu", Order()},
  };
  for (const auto& [device, what] : kAll) {
    SCOPED_TRACE(device + " " + what.name);
    if (kSanitized && what.name == "order") continue;  // a piece that is sorted takes a second
    const auto session = Open(device);
    const auto model = Load(*session, what);
    ASSERT_NE(model, nullptr);
    const RunRequest whole = Request(what, SizeFor(*model, what, kFull));
    Tensor expected;
    const Clock::duration full = Timed(*model, whole, expected);

    // The minimum of several, since other programs may use the processor at any time.
    const auto best = [&](Code code, auto&& run) {
      Clock::duration least = full;
      for (int i = 0; i < 3 && least > full / 2; ++i) {
        const auto begin = Clock::now();
        const Status status = run();
        least = std::min(least, Clock::now() - begin);
        EXPECT_EQ(status.code(), code) << status;
      }
      EXPECT_LT(least.count(), full.count() / 2 + Clock::duration(kLimit).count());
    };
    best(Code::kDeadlineExceeded, [&] {
      RunRequest request = whole;
      request.timeout = kLimit;
      return model->Run(request).status();
    });
    best(Code::kCancelled, [&] {
      RunRequest request = whole;
      request.cancel = CancellationToken::Create();
      std::thread canceller([&] {
        std::this_thread::sleep_for(kLimit);
        request.cancel.Cancel();
      });
      const Status status = model->Run(request).status();
      canceller.join();
      return status;
    });
    Tensor next;
    Timed(*model, whole, next);
    EXPECT_TRUE(SameBits(next, expected));

    const auto handle = model->RunAsync(whole);
    ASSERT_TRUE(handle.ok()) << handle.status();
    std::this_thread::sleep_for(kLimit);
    const auto begin = Clock::now();
    session->Close({.mode = CloseMode::kCancel});
    EXPECT_LT((Clock::now() - begin).count(), full.count() * 3 / 4);
    EXPECT_EQ(handle->Take().status().code(), Code::kCancelled);
  }
}

// Ending a run of one session must not affect results of the other on the same threads.
TEST_F(EarlyEnds, OfOneSessionOnSharedThreads) {
  const Long what = Convolution();
  const auto ending = Open("cpu", "shared"), going_on = Open("cpu", "shared");
  const auto cut = Load(*ending, what), whole = Load(*going_on, what);
  ASSERT_TRUE(cut != nullptr && whole != nullptr);
  const RunRequest request = Request(what, SizeFor(*whole, what, milliseconds(8)));
  Tensor expected;
  const auto full = Timed(*whole, request, expected);
  std::atomic<bool> over = false;
  std::atomic<int> cancelled = 0;
  std::thread other([&] {
    for (int i = 0; !over || cancelled == 0; ++i) {
      RunRequest mine = request;
      mine.cancel = CancellationToken::Create();
      std::thread canceller([&, i] {
        std::this_thread::sleep_for(full * (i % 7) / 5);
        mine.cancel.Cancel();
      });
      const auto ran = cut->Run(mine);
      canceller.join();
      if (ran.ok()) {
        EXPECT_TRUE(SameBits(ran->outputs[0].second, expected));
      } else {
        ++cancelled;
        EXPECT_EQ(ran.status().code(), Code::kCancelled) << ran.status();
      }
    }
  });
  for (int i = 0; i < (kSanitized ? 20 : 60); ++i) {
    const auto ran = whole->Run(request);
    EXPECT_TRUE(ran.ok()) << ran.status();
    EXPECT_TRUE(ran.ok() && SameBits(ran->outputs[0].second, expected)) << "round " << i;
  }
  over = true;
  other.join();
  EXPECT_GT(cancelled, 0);
}

// Long rows are sorted in pieces; ties are ordered by index.
TEST_F(EarlyEnds, SortingByPiecesIsSorting) {
  const Long what = Order();
  const auto session = Open("cpu");
  const auto model = Load(*session, what);
  ASSERT_NE(model, nullptr);
  for (const int64_t size : {int64_t{1}, int64_t{16}, int64_t{17}, int64_t{50}}) {
    const RunRequest request = Request(what, size);
    const auto ran = model->Run(request);
    ASSERT_TRUE(ran.ok()) << ran.status();
    const auto x = request.feeds[0].second.As<float>();
    std::vector<int64_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
    });
    const auto places = ran->outputs[1].second.As<int64_t>();
    EXPECT_TRUE(std::equal(order.begin(), order.end(), places.begin(), places.end())) << size;
  }
}

}  // namespace
}  // namespace oncilla
