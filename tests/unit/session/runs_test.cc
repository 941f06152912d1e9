// How runs end early: cancelled, past their deadline, on a device that hangs; and runs on threads
// of the session. The device is far, and as slow as the test says.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "tests/unit/support/far_session.h"

namespace oncilla {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Runs : public testing::FarSession {};

template <class Ready>
void WaitUntil(const Ready& ready) {
  while (!ready()) std::this_thread::sleep_for(milliseconds(1));
}

TEST_F(Runs, ACancelledRunEndsSoonAndTheNextIsRight) {
  Open();
  constexpr int kNodes = 400;
  const auto model = LoadTurns(kNodes);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->steps = 0;
  script_->step_us = 2000;
  RunRequest request = Request(testing::Row(1, 2, 3, 4));
  request.cancel = CancellationToken::Create();
  std::thread canceller([&] {
    WaitUntil([&] { return script_->steps > 2; });
    request.cancel.Cancel();
  });
  const auto cancelled = model->Run(request);
  canceller.join();
  EXPECT_EQ(cancelled.status().code(), Code::kCancelled) << cancelled.status();
  EXPECT_EQ(Details(cancelled.status()).stage, Stage::kRun);
  script_->step_us = 0;
  const auto next = model->Run(Request(testing::Row(5, 6, 7, 8)));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(Values(next->outputs[0].second), ElementsAre(5, 6, 7, 8));
  // The rest of the run must not have been submitted: what is queued ahead is bounded.
  EXPECT_LT(script_->steps, 2 * kNodes);
  request.cancel = CancellationToken::Create();
  request.cancel.Cancel();
  EXPECT_EQ(model->Run(request).status().code(), Code::kCancelled) << "cancelled before it began";
}

TEST_F(Runs, WaitingForAnotherRunEndsToo) {
  Open(SessionOptions{.max_concurrent_runs = 1});
  const auto model = LoadTurns(3);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang = true;
  RunRequest first = Request(testing::Row(1, 2, 3, 4));
  first.cancel = CancellationToken::Create();
  std::thread holder([&] { EXPECT_EQ(model->Run(first).status().code(), Code::kCancelled); });
  std::this_thread::sleep_for(milliseconds(20));
  RunRequest second = first;
  second.cancel = CancellationToken::Create();
  std::thread waiter([&] { EXPECT_EQ(model->Run(second).status().code(), Code::kCancelled); });
  std::this_thread::sleep_for(milliseconds(20));
  second.cancel.Cancel();
  waiter.join();
  RunRequest third = first;
  third.cancel = {};
  third.timeout = milliseconds(30);
  EXPECT_EQ(model->Run(third).status().code(), Code::kDeadlineExceeded);
  first.cancel.Cancel();
  holder.join();
  script_->hang = false;
}

TEST_F(Runs, RunsWithoutATimeLimitHaveTheSessions) {
  Open(SessionOptions{.run_timeout_ms = 30});
  const auto model = LoadTurns(3);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang = true;
  const auto late = model->Run(Request(testing::Row(1, 2, 3, 4)));
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status();
  script_->hang = false;
}

// The first run uploads the weights, and its upload ends with it; other runs that wait for it end
// within their own limits.
TEST_F(Runs, ATimeLimitBeyondTheClockIsNone) {
  Open();
  const auto model = LoadTurns(3);
  for (const int64_t limit : {INT64_MAX, INT64_MAX / 1000, int64_t{9'200'000'000'000}}) {
    RunRequest request = Request(testing::Row(1, 2, 3, 4));
    request.timeout = milliseconds(limit);
    EXPECT_TRUE(model->Run(request).ok()) << limit;
    const auto run = model->RunAsync(request);
    ASSERT_TRUE(run.ok());
    EXPECT_TRUE(run->Take().ok()) << limit;
    EXPECT_EQ(DeadlineAfter(std::chrono::steady_clock::now(), milliseconds(INT64_MAX)),
              kNoDeadline);
  }
  session_->Close({CloseMode::kDrain, milliseconds(INT64_MAX)});
}

TEST_F(Runs, AFirstRunOnADeviceThatHangsEndsInTimeToo) {
  Open(SessionOptions{.watchdog_ms = 200});
  const auto model = LoadTurns(3);
  script_->hang = true;
  RunRequest request = Request(testing::Row(1, 2, 3, 4));
  request.timeout = milliseconds(30);
  EXPECT_EQ(model->Run(request).status().code(), Code::kDeadlineExceeded);
  RunRequest first = Request(testing::Row(1, 2, 3, 4));
  first.cancel = CancellationToken::Create();
  std::thread holder([&] { EXPECT_EQ(model->Run(first).status().code(), Code::kCancelled); });
  std::this_thread::sleep_for(milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  const auto second = model->Run(request);
  EXPECT_EQ(second.status().code(), Code::kDeadlineExceeded) << second.status();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(150));
  first.cancel.Cancel();
  holder.join();
  script_->hang = false;
  const auto next = model->Run(Request(testing::Row(1, 2, 3, 4)));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(Values(next->outputs[0].second), ElementsAre(2, 3, 4, 1));
  script_->hang = true;
  const auto other = LoadTurns(2);
  const auto watched = other->Run(Request(testing::Row(1, 2, 3, 4)));
  EXPECT_EQ(watched.status().code(), Code::kUnavailable) << watched.status();
  EXPECT_THAT(std::string(Message(watched.status())),
              HasSubstr("an upload has not finished in 200 ms"));
  script_->hang = false;
}

// An upload of constants that takes longer than the run's limit is completed all the same: the next
// run finds the model ready. (The limit is far above what importing takes, which does end there.)
TEST_F(Runs, AModelThatLoadsForLongerThanItsRunsMayGetsReady) {
  Open();
  const auto model = LoadTurns(3);
  RunRequest request = Request(testing::Row(1, 2, 3, 4));
  request.timeout = milliseconds(200);
  script_->transfer_us = 300'000;
  for (int i = 0; i < 2; ++i) {
    const auto late = model->Run(request);
    EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status();
  }
  EXPECT_EQ(model->executables().counters().graphs_compiled, 1);
  script_->transfer_us = 0;
}

// The caller's memory is freed as soon as the run has returned; then the device continues.
TEST_F(Runs, PastTheDeadlineNothingOfTheCallersIsTouched) {
  Open();
  const auto model = LoadTurns(3);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  const size_t page = 4096;
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const float values[] = {1, 2, 3, 4};
  std::memcpy(memory, values, sizeof(values));
  script_->hang = true;
  for (const bool token : {false, true}) {
    RunRequest request = Request(Tensor::View(
        {DType::kF32, {1, 4}}, {static_cast<const std::byte*>(memory), sizeof(values)}, nullptr));
    if (token) {
      request.cancel = CancellationToken::Create();
      std::thread([cancel = request.cancel] {
        std::this_thread::sleep_for(milliseconds(30));
        cancel.Cancel();
      }).detach();
    } else {
      request.timeout = milliseconds(30);
    }
    EXPECT_EQ(model->Run(request).status().code(),
              token ? Code::kCancelled : Code::kDeadlineExceeded);
  }
  ASSERT_EQ(mprotect(memory, page, PROT_NONE), 0);
  const int64_t before = script_->uploaded_bytes;
  script_->hang = false;
  WaitUntil([&] { return script_->uploaded_bytes >= before + 32; });
  const auto next = model->Run(Request(testing::Row(1, 2, 3, 4)));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(Values(next->outputs[0].second), ElementsAre(2, 3, 4, 1));
  session_->Close();
  munmap(memory, page);
}

TEST_F(Runs, TheWatchdogNamesTheNodeThatHangsAndClosingDoesNotWait) {
  Open(SessionOptions{.watchdog_ms = 150});
  const auto model = LoadTurns(70);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang_before_node = 40;
  const Status stuck = model->Run(Request(testing::Row(1, 2, 3, 4))).status();
  EXPECT_EQ(stuck.code(), Code::kUnavailable) << stuck;
  EXPECT_THAT(Message(stuck), HasSubstr("has finished nothing for 150 ms"));
  EXPECT_THAT(Message(stuck), HasSubstr("between nodes 'turn32' and 'turn63'"));
  EXPECT_EQ(Details(stuck).node, "turn32");
  EXPECT_EQ(session_->memory().abandoned_bytes(), 0) << "the device may still finish";
  session_->Close();  // returns
  EXPECT_GT(session_->memory().abandoned_bytes(), 0);
  EXPECT_GT(script_->lost_queues, 0);
  script_->hang = false;
}

// Longer than the watchdog allows without progress, but never idle for that long.
TEST_F(Runs, TheWatchdogLetsSlowRunsBe) {
  Open(SessionOptions{.watchdog_ms = 200});
  const auto model = LoadTurns(400);
  script_->step_us = 1000;
  const auto ran = model->Run(Request(testing::Row(1, 2, 3, 4)));
  EXPECT_TRUE(ran.ok()) << ran.status();
}

TEST_F(Runs, AsynchronousRunsAnswerOnceEach) {
  Open();
  const auto model = LoadTurns(2);
  std::vector<RunHandle> handles;
  std::atomic<int> called = 0;
  for (int i = 0; i < 40; ++i) {
    auto handle = model->RunAsync(Request(testing::Row(static_cast<float>(i), 2, 3, 4)),
                                  [&](const RunHandle& run) { called += run.Done() ? 1 : 100; });
    ASSERT_TRUE(handle.ok()) << handle.status();
    handles.push_back(*handle);
  }
  for (int i = 0; i < 40; ++i) {
    const auto result = handles[static_cast<size_t>(i)].Take();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(Values(result->outputs[0].second), ElementsAre(3, 4, static_cast<float>(i), 2));
    EXPECT_TRUE(handles[static_cast<size_t>(i)].Done());
  }
  WaitUntil([&] { return called >= 40; });
  EXPECT_EQ(called, 40);
  EXPECT_EQ(handles[0].Take().status().code(), Code::kFailedPrecondition);
}

TEST_F(Runs, AsynchronousRunsAreCancelledOneByOneAndInLine) {
  Open(SessionOptions{.max_concurrent_runs = 1});
  const auto model = LoadTurns(2);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang = true;
  auto running = model->RunAsync(Request(testing::Row(1, 2, 3, 4)));
  auto in_line = model->RunAsync(Request(testing::Row(1, 2, 3, 4)));
  ASSERT_TRUE(running.ok() && in_line.ok());
  EXPECT_FALSE(running->Wait(std::chrono::steady_clock::now() + milliseconds(20)));
  in_line->Cancel();
  running->Cancel();
  EXPECT_EQ(running->Take().status().code(), Code::kCancelled);
  EXPECT_EQ(in_line->Take().status().code(), Code::kCancelled);
  script_->hang = false;
}

TEST_F(Runs, TooManyInLineAreRefused) {
  Open(SessionOptions{.max_concurrent_runs = 1});
  const auto model = LoadTurns(1);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang = true;
  Status refused;
  std::vector<RunHandle> handles;
  for (int i = 0; i < 1000 && refused.ok(); ++i) {
    auto handle = model->RunAsync(Request(testing::Row(1, 2, 3, 4)));
    refused = handle.status();
    if (handle.ok()) handles.push_back(*handle);
  }
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused;
  script_->hang = false;
  for (const RunHandle& handle : handles) EXPECT_TRUE(handle.Take().ok());
}

TEST_F(Runs, ClosingDrainsOrCancels) {
  for (const bool cancels : {false, true}) {
    Open();
    const auto model = LoadTurns(2);
    ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
    script_->hang = cancels;
    std::vector<RunHandle> handles;
    for (int i = 0; i < 9; ++i) {
      handles.push_back(*model->RunAsync(Request(testing::Row(1, 2, 3, 4))));
    }
    session_->Close({.mode = cancels ? CloseMode::kCancel : CloseMode::kDrain});
    for (const RunHandle& handle : handles) {
      const auto outcome = handle.Take();
      EXPECT_EQ(outcome.status().code(), cancels ? Code::kCancelled : Code::kOk)
          << outcome.status();
    }
    EXPECT_EQ(model->RunAsync(Request(testing::Row(1, 2, 3, 4))).status().code(),
              Code::kFailedPrecondition);
    script_->hang = false;
  }
}

TEST_F(Runs, DrainingHasATimeLimitWhereAsked) {
  Open();
  const auto model = LoadTurns(2);
  ASSERT_TRUE(model->Run(Request(testing::Row(1, 2, 3, 4))).ok());
  script_->hang = true;
  const auto handle = model->RunAsync(Request(testing::Row(1, 2, 3, 4)));
  ASSERT_TRUE(handle.ok());
  session_->Close({.mode = CloseMode::kDrain, .timeout = milliseconds(50)});
  EXPECT_EQ(handle->Take().status().code(), Code::kCancelled);
  script_->hang = false;
}

TEST_F(Runs, ACallbackMayUnloadAndLetGoOfEverything) {
  Open();
  auto model = LoadTurns(2);
  std::atomic<int64_t> released = 0;
  Model* const raw = model.get();
  auto handle = model->RunAsync(Request(testing::Row(1, 2, 3, 4)),
                                [&, raw](const RunHandle&) { released = raw->Unload().bytes; });
  ASSERT_TRUE(handle.ok());
  model.reset();
  session_.reset();
  EXPECT_TRUE(handle->Take().ok());
  WaitUntil([&] { return released > 0; });
}

}  // namespace
}  // namespace oncilla
