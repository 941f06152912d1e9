// Prefetching: order, ends and failures; that the next feeds are uploaded while the device
// computes; and what delays it.
#include "engine/session/prefetch.h"

#include <gmock/gmock.h>

#include <atomic>

#include "tests/unit/support/far_session.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Prefetching : public testing::FarSession {
 protected:
  std::shared_ptr<Callable> Make(int nodes) {
    model_ = LoadTurns(nodes);
    CallableOptions options;
    options.feeds = {"x"};
    return *Callable::Create(model_, options);
  }
  // Rows (i, 2, 3, 4) for i below `count`.
  FeedSource Rows(int count) {
    return [this, count](std::span<Tensor> feeds) -> Result<bool> {
      const int i = made_++;
      if (i >= count) return false;
      feeds[0] = testing::Row(static_cast<float>(i), 2, 3, 4);
      return true;
    };
  }
  std::shared_ptr<Model> model_;
  std::atomic<int> made_ = 0;
};

TEST_F(Prefetching, GivesAllInOrderAndEnds) {
  Open();
  auto prefetcher = *Prefetcher::Create(Make(1), Rows(20), 3);
  for (int i = 0; i < 20; ++i) {
    auto out = prefetcher->Next();
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_TRUE(out->has_value());
    EXPECT_THAT(Values((**out)[0].host()), ElementsAre(4, static_cast<float>(i), 2, 3));
  }
  for (int i = 0; i < 2; ++i) {
    auto end = prefetcher->Next();
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end->has_value());
  }
  EXPECT_EQ(made_, 21);
}

TEST_F(Prefetching, UploadsWhileTheDeviceComputes) {
  Open();
  const auto callable = Make(6);
  ASSERT_TRUE(callable->Run(std::vector<RunValue>{testing::Row(1, 2, 3, 4)}).ok());
  script_->step_us = script_->transfer_us = 3000;
  const size_t before = script_->Spans().size();
  auto prefetcher = *Prefetcher::Create(callable, Rows(8));
  RunStats stats;
  CallOptions options;
  options.stats = &stats;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(prefetcher->Next(options).ok());
  EXPECT_EQ(stats.copies, 8) << "only the fetches";
  int overlaps = 0;
  const auto spans = script_->Spans();
  for (size_t u = before; u < spans.size(); ++u) {
    if (spans[u].kind != 'u') continue;
    for (size_t s = before; s < spans.size(); ++s) {
      overlaps += spans[s].kind == 's' && spans[s].begin_ns < spans[u].end_ns &&
                  spans[u].begin_ns < spans[s].end_ns;
    }
  }
  EXPECT_GT(overlaps, 0);
}

TEST_F(Prefetching, StaysWithinItsDepth) {
  Open();
  auto prefetcher = *Prefetcher::Create(Make(1), Rows(1000), 2);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(prefetcher->Next().ok());
    EXPECT_LE(made_, i + 1 + 3) << "at most two sets ready and one being made";
  }
}

TEST_F(Prefetching, FailuresOfTheSourceComeInTheirPlace) {
  Open();
  auto good = Rows(1000);
  auto prefetcher = *Prefetcher::Create(
      Make(1),
      [&](std::span<Tensor> feeds) -> Result<bool> {
        if (made_ == 3) return DataLoss("the camera is gone");
        return good(feeds);
      },
      2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(prefetcher->Next().ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = prefetcher->Next().status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(Message(status), HasSubstr("the camera is gone"));
  }
  auto empty = *Prefetcher::Create(Make(1), [](std::span<Tensor>) { return Result<bool>(true); });
  EXPECT_THAT(Message(empty->Next().status()), HasSubstr("left feed 0 ('x') empty"));
  EXPECT_FALSE(Prefetcher::Create(Make(1), good, 0).ok());
}

// Memory for the run and for little more: sets must wait for each other, and every result must be
// right.
TEST_F(Prefetching, StaysWithinTheMemoryLimit) {
  constexpr int64_t kLimit = (3 << 20) + (1 << 19);
  Open(SessionOptions{.memory_limit_bytes = kLimit});
  constexpr int64_t kRows = (1 << 20) / 16;  // a feed of 1 MiB
  int made = 0;
  auto prefetcher = *Prefetcher::Create(
      Make(2),
      [&](std::span<Tensor> feeds) -> Result<bool> {
        if (made == 6) return false;
        feeds[0] = *Tensor::Allocate({DType::kF32, {kRows, 4}});
        feeds[0].MutableAs<float>()[0] = static_cast<float>(++made);
        return true;
      },
      4);
  for (int i = 1; i <= 6; ++i) {
    auto out = prefetcher->Next();
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_TRUE(out->has_value());
    EXPECT_EQ((**out)[0].host().As<float>()[2], static_cast<float>(i));
  }
  EXPECT_LE(session_->memory().Devices()[1].peak_bytes, kLimit);
}

TEST_F(Prefetching, EndsWithItsModelOrWhenItIsLetGo) {
  Open();
  auto prefetcher = *Prefetcher::Create(Make(1), Rows(1000), 2);
  ASSERT_TRUE(prefetcher->Next().ok());
  session_->Close();
  Status status;
  for (int i = 0; i < 4 && status.ok(); ++i) status = prefetcher->Next().status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
  CallOptions options;
  options.cancel = CancellationToken::Create();
  prefetcher.reset();  // ends
}

TEST_F(Prefetching, WaitingForTheSourceIsCancelled) {
  Open();
  std::atomic<bool> go = false;
  auto prefetcher = *Prefetcher::Create(Make(1), [&](std::span<Tensor>) -> Result<bool> {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return false;
  });
  CallOptions options;
  options.timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(prefetcher->Next(options).status().code(), Code::kDeadlineExceeded);
  go = true;
}

// The source takes most of the limit; the run has what is left, not the whole limit again.
TEST_F(Prefetching, ATimeLimitIsOfWaitingAndRunningTogether) {
  Open();
  const auto callable = Make(1);
  ASSERT_TRUE(callable->Run(std::vector<RunValue>{testing::Row(1, 2, 3, 4)}).ok());
  auto prefetcher = *Prefetcher::Create(callable, [&](std::span<Tensor> feeds) -> Result<bool> {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    feeds[0] = testing::Row(1, 2, 3, 4);
    script_->hang_before_node = 1;
    return true;
  });
  CallOptions options;
  options.timeout = std::chrono::milliseconds(400);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(prefetcher->Next(options).status().code(), Code::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(650));
  script_->hang = false;
}

}  // namespace
}  // namespace oncilla
