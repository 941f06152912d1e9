// WaitWord: an atomic number on which threads can sleep until it changes. A futex on Linux, a
// condition variable elsewhere. Only for thread_pool.cc: code that changes the number must call
// Wake if a thread may be asleep. The pool knows whether one is, and skips the system call if not.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#if defined(__linux__) && !defined(ONCILLA_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace oncilla {

struct WaitWord {
  std::atomic<uint32_t> value{0};

#if defined(__linux__) && !defined(ONCILLA_NO_FUTEX)
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

  // Sleeps while value == `old`; may also return early (spurious wakeup).
  void Wait(uint32_t old) { Futex(FUTEX_WAIT_PRIVATE, old); }
  // Wakes at most `count` sleepers.
  void Wake(int count) { Futex(FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(count)); }

 private:
  void Futex(int operation, uint32_t argument) {
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value), operation, argument, nullptr, nullptr,
              0);
  }
#else
  void Wait(uint32_t old) {
    std::unique_lock lock(mutex_);
    if (value.load() == old) changed_.wait(lock);
  }
  void Wake(int) {
    // The lock orders this after a waiter's test of the value and before its sleep, or after both.
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
#endif
};

}  // namespace oncilla
