// Giving up and taking the interpreter's lock, also while the interpreter ends.
//
// CPython before 3.14 ends a thread that asks for the lock then by unwinding its stack, which C++
// takes for an exception that nobody may throw, and ends the process. So threads other than the one
// that ends the interpreter do not ask any more: they wait for the end of the process. Those that
// have asked already, or are in the module, are waited for (BeginEnd).
#pragma once

#include <Python.h>
#include <pythread.h>
#include <unistd.h>

#include <atomic>

namespace oncilla_python {

// The thread that ends the interpreter, once it has begun to (_session.py); else 0.
extern std::atomic<unsigned long> ending_thread;

// How many threads are in the module, but not in the library, or wait to come back from there.
extern std::atomic<int> busy_threads;

// Whether the interpreter ends on another thread than this one.
inline bool InterpreterEnds() {
  const unsigned long by = ending_thread.load();
  return by != 0 && by != PyThread_get_thread_ident();
}

// While one lives, this thread is in the module. Calls that run Python's code or may wait have one.
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

// While one lives, other threads of Python's run.
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

// Called by the thread that ends the interpreter, before that begins.
void BeginEnd();

}  // namespace oncilla_python
