// ThreadPool: every chunk exactly once with the same bounds; nested, crossing and competing calls;
// sleeping and spinning workers. To be run under ThreadSanitizer too.
#include "engine/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/base/early_end.h"

namespace oncilla {
namespace {

TEST(ThreadPool, EveryChunkOnceAndCutByGrain) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t n : {0, 1, 2, 5, 64, 97, 1000}) {
      for (int64_t grain : {-1, 0, 1, 2, 3, 16, 2000}) {
        const int64_t step = std::max<int64_t>(grain, 1);
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_EQ(begin % step, 0);
          EXPECT_EQ(end, std::min(n, begin + step));
          EXPECT_TRUE(worker >= 0 && worker < threads);
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)]++;
        });
        for (const auto& hit : hits) EXPECT_EQ(hit, 1);
      }
    }
  }
}

TEST(ThreadPool, HugeRangesDoNotOverflow) {
  ThreadPool pool(3);
  const int64_t n = INT64_MAX, grain = INT64_MAX / 5;
  std::atomic<uint64_t> sum = 0;
  std::atomic<int> calls = 0;
  pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int) {
    EXPECT_LT(begin, end);
    sum += static_cast<uint64_t>(end - begin);
    calls++;
  });
  EXPECT_EQ(sum, static_cast<uint64_t>(n));
  EXPECT_EQ(calls, 6);
}

TEST(ThreadPool, OneWorkerNumberIsNeverTwoThreadsAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  for (int round = 0; round < 50; ++round) {
    pool.ParallelFor(64, 1, [&](int64_t, int64_t, int worker) {
      auto& mine = inside[static_cast<size_t>(worker)];
      EXPECT_EQ(mine.fetch_add(1), 0);
      std::this_thread::yield();
      mine.fetch_sub(1);
    });
  }
}

TEST(ThreadPool, WritesAreVisibleToTheCaller) {
  // Plain, unsynchronised memory: ThreadSanitizer checks the ordering.
  ThreadPool pool(4);
  std::vector<int64_t> data(1000, 0);
  for (int64_t round = 1; round <= 300; ++round) {
    pool.ParallelFor(1000, 7, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) data[static_cast<size_t>(i)] += i;
    });
    ASSERT_EQ(std::accumulate(data.begin(), data.end(), int64_t{0}), round * 999 * 1000 / 2);
  }
}

TEST(ThreadPool, AllWorkersTakePartInLongWork) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> chunks(3);
  // Each chunk waits until three have begun, which only three threads can bring about.
  std::atomic<int> begun = 0;
  pool.ParallelFor(3, 1, [&](int64_t, int64_t, int worker) {
    chunks[static_cast<size_t>(worker)]++;
    begun++;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 3 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  });
  for (const auto& count : chunks) EXPECT_EQ(count, 1);
}

TEST(ThreadPool, SleepingWorkersWake) {
  for (int spin_us : {0, 60}) {
    ThreadPool pool({.threads = 2, .spin_us = spin_us});
    for (int round = 0; round < 10; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::atomic<int> begun = 0;
      pool.ParallelFor(2, 1, [&](int64_t, int64_t, int) {
        begun++;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (begun < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      });
      EXPECT_EQ(begun, 2);
    }
  }
}

TEST(ThreadPool, AWorkerThatLosesItsCoreIsWaitedFor) {
  // Repeatedly, one chunk takes far longer than the caller spins: the caller
  // sleeps, workers stop spinning, and every chunk must still run once.
  ThreadPool pool({.threads = 3, .spin_us = 20});
  std::atomic<int> sum = 0;
  for (int round = 0; round < 30; ++round) {
    pool.ParallelFor(12, 1, [&](int64_t, int64_t, int worker) {
      std::this_thread::sleep_for(std::chrono::microseconds(worker == 1 ? 400 : 20));
      sum++;
    });
  }
  for (int round = 0; round < 2000; ++round) {
    pool.ParallelFor(12, 1, [&](int64_t, int64_t, int) { sum++; });
  }
  EXPECT_EQ(sum, 2030 * 12);
}

TEST(ThreadPool, NestedCallsRunOnTheirOwnThread) {
  ThreadPool pool(3), other(2);
  std::atomic<int> inner_chunks = 0;
  pool.ParallelFor(6, 1, [&](int64_t, int64_t, int) {
    const std::thread::id self = std::this_thread::get_id();
    for (ThreadPool* inner : {&pool, &other}) {
      inner->ParallelFor(4, 1, [&](int64_t, int64_t, int worker) {
        EXPECT_EQ(worker, 0);
        EXPECT_EQ(std::this_thread::get_id(), self);
        inner_chunks++;
      });
    }
  });
  EXPECT_EQ(inner_chunks, 48);
}

TEST(ThreadPool, NestedCrossingAndCompetingCalls) {
  for (int threads : {2, 3, 4}) {
    ThreadPool pool({.threads = threads, .spin_us = 5}), other({.threads = 2, .spin_us = 0});
    std::atomic<int64_t> errors = 0;
    auto caller = [&](uint32_t seed) {
      for (int round = 0; round < 1500; ++round) {
        seed = seed * 1664525 + 1013904223;
        const int64_t n = 1 + (seed >> 20) % 97, grain = 1 + (seed >> 10) % 5;
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) {
            hits[static_cast<size_t>(i)]++;
            ThreadPool* inner = i == 3 ? &other : i == 5 ? &pool : nullptr;
            if (inner == nullptr) continue;
            std::atomic<int> inside = 0;
            inner->ParallelFor(4, 1, [&](int64_t, int64_t, int) { inside++; });
            errors += inside != 4;
          }
        });
        for (const auto& hit : hits) errors += hit != 1;
        if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    };
    std::thread a(caller, 1), b(caller, 2);
    caller(3);
    a.join();
    b.join();
    EXPECT_EQ(errors, 0);
  }
}

TEST(ThreadPool, PartialSumsPerChunkRepeatWithAnyThreadCount) {
  constexpr int64_t kCount = 10'001, kGrain = 64;
  auto total = [&](ThreadPool& pool) {
    std::vector<float> partial((kCount + kGrain - 1) / kGrain);
    pool.ParallelFor(kCount, kGrain, [&](int64_t begin, int64_t end, int) {
      float sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += 1.0f / static_cast<float>(i + 1);
      partial[static_cast<size_t>(begin / kGrain)] = sum;
    });
    return std::accumulate(partial.begin(), partial.end(), 0.0f);
  };
  ThreadPool one(1), two(2), five(5);
  const float expected = total(one);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(total(two), expected);
    EXPECT_EQ(total(five), expected);
  }
}

TEST(ThreadPool, LeavesOutTheRestOnceACallIsToEnd) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      EarlyEnd end;
      end.cancel = CancellationToken::Create();
      std::atomic<int> done = 0;
      const auto body = [&](int64_t, int64_t, int) {
        const int number = ++done;
        if (number == 10) end.cancel.Cancel();
        while (number > 10 && !end.cancel.cancelled()) std::this_thread::yield();
      };
      pool.ParallelFor(100000, 1, body, &end);
      EXPECT_GE(done, 10);
      EXPECT_LT(done, 10 + threads) << "each worker ends its chunk, and takes no other";
      done = 0;
      pool.ParallelFor(100, 1, body, &end);
      EXPECT_EQ(done, 0) << "it stays so";
      pool.ParallelFor(100, 1, [&](int64_t, int64_t, int) { ++done; });
      EXPECT_EQ(done, 100) << "an end must affect its own call only";
    }
    EarlyEnd late;
    late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    std::atomic<int> done = 0;
    pool.ParallelFor(
        100000, 1,
        [&](int64_t, int64_t, int) {
          ++done;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        &late);
    EXPECT_LT(done, 10000);
    EXPECT_TRUE(late.reached());
  }
}

TEST(ThreadPool, WhatEndsOneCallEndsNoOther) {
  ThreadPool pool(3);
  EarlyEnd ended;
  ended.cancel = CancellationToken::Create();
  ended.cancel.Cancel();
  std::atomic<int> outer = 0, left_out = 0;
  pool.ParallelFor(1000, 1, [&](int64_t, int64_t, int) {  // inside of a body
    pool.ParallelFor(
        4, 1, [&](int64_t, int64_t, int) { ++left_out; }, &ended);
    ++outer;
  });
  EXPECT_EQ(outer, 1000);
  EXPECT_EQ(left_out, 0);
  std::atomic<bool> over = false;
  std::thread other([&] {  // and beside it
    for (int round = 0; !over; ++round) {
      EarlyEnd end;
      end.stop = CancellationToken::Create();
      std::atomic<int> done = 0;
      pool.ParallelFor(
          200, 1,
          [&](int64_t, int64_t, int) {
            if (++done == round % 20) end.stop.Cancel();
          },
          &end);
    }
  });
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int64_t> sum = 0;
    pool.ParallelFor(100, 3, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    ASSERT_EQ(sum, 100) << round;
  }
  over = true;
  other.join();
}

TEST(ThreadPool, DestructionNeedsNoWork) {
  for (int round = 0; round < 50; ++round) ThreadPool pool(1 + round % 4);
  EXPECT_GE(DefaultThreadCount(), 1);
  EXPECT_GE(ThreadPool().size(), 1);
}

}  // namespace
}  // namespace oncilla
