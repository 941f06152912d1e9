// Work that callbacks of the library leave to threads of Python: releasing references, logging
// messages, completing runs.
#pragma once

#include <atomic>

#include "python/src/handles.h"

namespace oncilla_python {

// An object of Python that the library holds through a wrapped tensor or the bytes of a model: a
// view of an object, or something that `free` releases; may be null.
struct Kept {
  Kept* next = nullptr;
  Py_buffer view = {};
  void* managed = nullptr;
  void (*free)(void* managed) = nullptr;
};
// While an object exists, its thread will call Drain, so that no other thread has to be notified.
class WillDrain {
 public:
  WillDrain() : before_(std::exchange(promised, true)) {}
  ~WillDrain() { promised = before_; }
  WillDrain(const WillDrain&) = delete;
  WillDrain& operator=(const WillDrain&) = delete;
  static thread_local bool promised;

 private:
  const Inside inside_;
  const bool before_;
};
// The `release` of oncilla_tensor_wrap, whose `user` is a Kept. Callable from any thread.
void ReleaseLater(void* kept);

extern std::atomic<Kept*> kept_for_release;
extern std::atomic<bool> messages_wait;
void DrainSlow();
// Does the deferred work that needs the interpreter's lock. Called by code that has called the
// library.
inline void Drain() {
  if (kept_for_release.load(std::memory_order_relaxed) != nullptr ||
      messages_wait.load(std::memory_order_relaxed)) {
    DrainSlow();
  }
}

// The log and done hooks of a runtime: messages go to Python's `logging`.
void LogLater(void* user, oncilla_log_level level, const char* message);
// The done hook of an asynchronous run, whose `user` is the number that wait_for_runs returns.
void RunIsOver(void* number);

}  // namespace oncilla_python
