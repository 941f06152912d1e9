// Threads and the interpreter's lock when the interpreter ends.
#include "python/src/unlock.h"

namespace oncilla_python {

std::atomic<unsigned long> ending_thread{0};
std::atomic<int> busy_threads{0};
thread_local bool Inside::here = false;

Inside::Inside() : outermost_(!here) {
  if (!outermost_) return;
  ++busy_threads;
  if (InterpreterEnds()) {
    --busy_threads;
    PyEval_SaveThread();
    for (;;) pause();
  }
  here = true;
}

void BeginEnd() {
  constexpr int kMostMilliseconds = 2000;  // a hook of the program may never return
  ending_thread.store(PyThread_get_thread_ident());
  for (int i = 0; i < kMostMilliseconds && busy_threads.load() > 0; ++i) {
    PyThreadState* state = PyEval_SaveThread();
    usleep(1000);
    PyEval_RestoreThread(state);
  }
}

}  // namespace oncilla_python
