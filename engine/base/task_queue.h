// TaskQueue: a few threads that do what is put in line, in order.
//
// For work that waits for devices; the kernels' pool (thread_pool.h) is for work that is divided.
// Threads start when they are first needed. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "engine/base/status.h"

namespace oncilla {

class TaskQueue {
 public:
  explicit TaskQueue(int threads, size_t most_waiting = 256);
  // Does what is in line first. Tasks may destroy the queue.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // ResourceExhausted when too many wait, or the system gives no thread. A task must not throw: it
  // must itself report its failure to its waiter, which a thread of the queue cannot do. If it
  // throws all the same, that ends this task alone.
  Status Post(std::function<void()> task);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace oncilla
