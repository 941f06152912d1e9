// What callbacks of the library leave for threads of Python's to do: references to give back,
// messages to log, runs that are over.
#pragma once

#include <atomic>

#include "python/src/handles.h"

namespace oncilla_python {

// What the library holds of others' through a wrapped tensor or the bytes of a model: a view of an
// object, or something that `free` gives back and may be null.
struct Kept {
  Kept* next = nullptr;
  Py_buffer view = {};
  void* managed = nullptr;
  void (*free)(void* managed) = nullptr;
};
// While one lives, its thread will drain: nobody else need be asked to.
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
// Does what is left to do and needs the interpreter's lock. Called by whoever has called the
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
