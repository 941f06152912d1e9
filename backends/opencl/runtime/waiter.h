// Waiting for events of one queue until a deadline.
//
// A wait sleeps until the driver calls back that the command is over. Nothing depends on that call:
// the state of the command is looked at in growing intervals too, since a driver may call late or
// never. To wake a thread takes tens of microseconds, which is as long as a small net takes. So a
// wait looks on closely around the time at which it should be over, as the wait at the same place
// of the last run tells; not on CPU devices, whose own threads would have less of the processor.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "backends/opencl/runtime/cl_objects.h"

namespace oncilla::opencl {

// Not thread-safe, as the queue that it belongs to.
class Waiter {
 public:
  Waiter(const Api& api, bool looks_closely) : api_(api), looks_closely_(looks_closely) {}

  // WaitFor (cl_objects.h) with these means: the outcome of the command, or DeadlineExceeded. Calls
  // for one event in a row count as one wait.
  Status Wait(cl_event event, std::chrono::steady_clock::time_point deadline);
  // Nothing is in flight: the next wait is the first of a run.
  void Restart();

 private:
  using Clock = std::chrono::steady_clock;
  class Signal;

  // When the wait should look again.
  Clock::time_point NextLook(Clock::time_point now) const;

  const Api& api_;
  const bool looks_closely_;
  cl_event event_ = nullptr;  // waited for since `since_`
  Clock::time_point since_{};
  std::shared_ptr<Signal> signal_;  // of event_; null before it is asked for
  // How long the waits of the last run took, in order; `place_` is the one at hand.
  std::vector<Clock::duration> last_;
  size_t place_ = 0;
};

}  // namespace oncilla::opencl
