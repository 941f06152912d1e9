// Mutex: a std::mutex whose guarded fields clang checks at compile time (ABSL_GUARDED_BY), and on
// which a thread can wait for a condition. Code that changes the condition only has to unlock:
// every unlock wakes the waiting threads. Made of parts of std only, because ThreadSanitizer does
// not see through the locks of a library that was built without it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace oncilla {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    // Before unlocking: afterwards a waiter may already have destroyed this.
    if (waiting_ > 0) changed_.notify_all();
    mutex_.unlock();
  }

  // Unlocks until `ready()` is true; it is called with the mutex held.
  template <class Ready>
  void Await(const Ready& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    WaitWith([&](std::unique_lock<std::mutex>& lock) {
      changed_.wait(lock, ready);
      return true;
    });
  }
  // As Await(), until a deadline. Returns false if the condition is not true by then.
  template <class Ready>
  bool AwaitUntil(std::chrono::steady_clock::time_point deadline, const Ready& ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return WaitWith([&](std::unique_lock<std::mutex>& lock) {
      return changed_.wait_until(lock, deadline, ready);
    });
  }

 private:
  template <class Wait>
  bool WaitWith(const Wait& wait) {
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    // Waiting also unlocks: another thread may wait for what was changed before.
    if (waiting_ > 0) changed_.notify_all();
    ++waiting_;
    const bool ready = wait(lock);
    --waiting_;
    lock.release();
    return ready;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;  // under mutex_
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(*mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace oncilla
