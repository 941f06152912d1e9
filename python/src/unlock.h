// Releasing and acquiring the interpreter's lock, also while the interpreter shuts down.
//
// CPython before 3.14 ends a thread that requests the lock during shutdown by unwinding its stack,
// which C++ treats as an exception that no function may throw, and ends the process. So threads
// other than the one that shuts the interpreter down do not request the lock any more: they wait
// for the end of the process. Threads that have requested it already, or are in the module, are
// waited for (BeginEnd).
#pragma once

#include <Python.h>
#include <pythread.h>
#include <unistd.h>

#include <atomic>

namespace oncilla_python {

// The thread that shuts the interpreter down, once it has begun to (_session.py); else 0.
extern std::atomic<unsigned long> ending_thread;

// The number of threads that are in the module, but not in the library, or that wait to return from
// there.
extern std::atomic<int> busy_threads;

// Whether another thread shuts the interpreter down.
inline bool InterpreterEnds() {
  const unsigned long by = ending_thread.load();
  return by != 0 && by != PyThread_get_thread_ident();
}

// While an object exists, this thread is in the module. Calls that run Python code or may wait have
// one.
class Inside {
 public:
  Inside();
  ~Inside() {
    if (outermost_) {
      here = false;
      --busy_threads;
    }
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static thread_local bool here;

 private:
  const bool outermost_;
};

// While an object exists, other threads of Python can run.
class Unlock {
 public:
  Unlock() : state_(PyEval_SaveThread()) {
    if (Inside::here) --busy_threads;
  }
  ~Unlock() {
    ++busy_threads;
    if (InterpreterEnds()) {
      --busy_threads;
      for (;;) pause();
    }
    PyEval_RestoreThread(state_);
    if (!Inside::here) --busy_threads;
  }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  PyThreadState* const state_;
};

// Called by the thread that shuts the interpreter down, before that begins.
void BeginEnd();

}  // namespace oncilla_python
