// Threads share ownership of the state with the queue, so that a thread whose task destroys the
// queue can still finish.
#include "engine/base/task_queue.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"

namespace oncilla {

struct TaskQueue::State {
  State(size_t most_threads, size_t most) : most_threads(most_threads), most_waiting(most) {}

  void Work() {
    for (;;) {
      std::function<void()> task;
      {
        MutexLock lock(&mutex);
        ++idle;
        mutex.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return ends || !line.empty(); });
        --idle;
        if (line.empty()) return;
        task = std::move(line.front());
        line.pop_front();
      }
      try {
        task();
      } catch (...) {  // the task itself reports failures to its caller: see task_queue.h
      }
    }
  }

  const size_t most_threads, most_waiting;
  Mutex mutex;
  std::deque<std::function<void()>> line ABSL_GUARDED_BY(mutex);
  std::vector<std::thread> threads ABSL_GUARDED_BY(mutex);
  size_t idle ABSL_GUARDED_BY(mutex) = 0;
  bool ends ABSL_GUARDED_BY(mutex) = false;
};

TaskQueue::TaskQueue(int threads, size_t most_waiting)
    : state_(std::make_shared<State>(static_cast<size_t>(std::max(threads, 1)), most_waiting)) {}

TaskQueue::~TaskQueue() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&state_->mutex);
    state_->ends = true;
    threads.swap(state_->threads);
  }
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

Status TaskQueue::Post(std::function<void()> task) {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  if (state.line.size() >= state.most_waiting) {
    return Exhausted(state.line.size(), " tasks are waiting already");
  }
  if (state.idle <= state.line.size() && state.threads.size() < state.most_threads) {
    try {
      state.threads.emplace_back([shared = state_] { shared->Work(); });
    } catch (const std::exception&) {  // no thread, or no memory for one
      if (state.threads.empty()) return Exhausted("the system could not start a thread");
    }
  }
  state.line.push_back(std::move(task));
  return Status();
}

}  // namespace oncilla
