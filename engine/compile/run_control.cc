// Waits that end with the run, and memory that outlives it.
#include "engine/compile/run_control.h"

#include <mutex>
#include <vector>

namespace oncilla {

Status AwaitUpload(Device& device, const EventPtr& event, const RunControl& control) {
  constexpr std::chrono::milliseconds kLook(4);  // a cancelled run is noticed within this time
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point now = Clock::now();
    Status status = device.Wait(event, std::min(control.deadline, now + kLook));
    if (status.code() != Code::kDeadlineExceeded) return status;
    ONCILLA_TRY(MayWait(control, begin, "an upload"));
  }
}

void KeepForever(std::shared_ptr<const void> memory) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<const void>>();
  std::lock_guard lock(mutex);
  kept->push_back(std::move(memory));
}

bool WasGivenUp(Device& device, const EventPtr& event) {
  const Code outcome = device.Wait(event, Deadline::min()).code();
  return outcome == Code::kUnavailable || outcome == Code::kDeadlineExceeded;
}

}  // namespace oncilla
