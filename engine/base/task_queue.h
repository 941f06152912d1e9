// TaskQueue: a few threads that run queued tasks in order.
//
// For tasks that wait for devices; the kernels' pool (thread_pool.h) is for dividing computation.
// Threads start when they are first needed. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "engine/base/status.h"

namespace oncilla {

class TaskQueue {
 public:
  explicit TaskQueue(int threads, size_t most_waiting = 256);
  // Runs all queued tasks first. A task may destroy the queue.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // ResourceExhausted when too many tasks are waiting, or the system refuses a thread. A task must
  // not throw: it must report its failure itself, which the queue's thread cannot do for it. If it
  // throws all the same, only this task ends.
  Status Post(std::function<void()> task);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace oncilla
