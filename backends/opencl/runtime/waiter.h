// Waiting for events of one queue until a deadline.
//
// A wait sleeps until the driver calls back that the command is complete. It does not depend on
// that call: the state of the command is also polled in growing intervals, since a driver may call
// late or never. Waking a thread takes tens of microseconds, which is as long as a small net takes.
// So a wait polls continuously around the time at which it should end, as estimated from the same
// wait of the last run; not on CPU devices, whose own threads would have less of the processor.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "backends/opencl/runtime/cl_objects.h"

namespace oncilla::opencl {

// Not thread-safe, like the queue that it belongs to.
class Waiter {
 public:
  Waiter(const Api& api, bool looks_closely) : api_(api), looks_closely_(looks_closely) {}

  // Implements WaitFor (cl_objects.h): the outcome of the command, or DeadlineExceeded. Consecutive
  // calls for one event count as one wait.
  Status Wait(cl_event event, std::chrono::steady_clock::time_point deadline);
  // Nothing is in progress: the next wait is the first of a run.
  void Restart();

 private:
  using Clock = std::chrono::steady_clock;
  class Signal;

  // When the wait should poll next.
  Clock::time_point NextLook(Clock::time_point now) const;

  const Api& api_;
  const bool looks_closely_;
  cl_event event_ = nullptr;  // waited for since `since_`
  Clock::time_point since_{};
  std::shared_ptr<Signal> signal_;  // for event_; null before it is requested
  // The durations of the waits of the last run, in order; `place_` is the current one.
  std::vector<Clock::duration> last_;
  size_t place_ = 0;
};

}  // namespace oncilla::opencl
