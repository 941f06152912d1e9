// Mutex: waiting for a condition that another thread makes true just by unlocking.
#include "engine/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace oncilla {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Counter {
  Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;

  void Add() {
    MutexLock lock(&mutex);
    ++value;
  }
};

TEST(Mutex, EveryWaiterSeesTheConditionComeTrue) {
  Counter counter;
  std::vector<std::thread> waiters;
  for (int wanted = 1; wanted <= 3; ++wanted) {
    waiters.emplace_back([&counter, wanted] {
      MutexLock lock(&counter.mutex);
      counter.mutex.Await(
          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter.mutex) { return counter.value >= wanted; });
    });
  }
  for (int i = 0; i < 3; ++i) counter.Add();
  for (std::thread& waiter : waiters) waiter.join();
}

// Waiting unlocks: another thread may wait for what the waiting thread changed before. Without a
// notification there, both would wait forever.
TEST(Mutex, WaitingWakesOtherWaiters) {
  Counter counter;
  std::atomic<bool> locked = false;
  std::thread other([&] {
    MutexLock lock(&counter.mutex);
    locked = true;
    counter.mutex.Await(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter.mutex) { return counter.value >= 1; });
    ++counter.value;
  });
  while (!locked) std::this_thread::yield();
  {
    MutexLock lock(&counter.mutex);  // it is waiting now
    ++counter.value;
    EXPECT_TRUE(counter.mutex.AwaitUntil(
        steady_clock::now() + std::chrono::seconds(10),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter.mutex) { return counter.value == 2; }));
  }
  other.join();
}

TEST(Mutex, AwaitUntilGivesUpAtItsTimeAndNotBefore) {
  Counter counter;
  MutexLock lock(&counter.mutex);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter.mutex) {
    return counter.value == 1;
  };
  const auto deadline = steady_clock::now() + milliseconds(20);
  EXPECT_FALSE(counter.mutex.AwaitUntil(deadline, ready));
  EXPECT_GE(steady_clock::now(), deadline);
  counter.value = 1;
  EXPECT_TRUE(counter.mutex.AwaitUntil(steady_clock::now(), ready));
}

// The thread that waited may destroy the mutex at once: the unlocking thread must not use it any
// more.
TEST(Mutex, MayBeDestroyedByWhoWaited) {
  for (int round = 0; round < 100; ++round) {
    auto counter = std::make_unique<Counter>();
    Counter* shared = counter.get();
    std::thread adder([shared] { shared->Add(); });
    {
      MutexLock lock(&counter->mutex);
      counter->mutex.Await(
          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter->mutex) { return counter->value == 1; });
    }
    adder.join();
  }
}

}  // namespace
}  // namespace oncilla
