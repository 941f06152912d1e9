// Waiting that ends with the run.
#include "engine/compile/run_control.h"

namespace oncilla {

Status AwaitUpload(Device& device, const EventPtr& event, const RunControl& control) {
  constexpr std::chrono::milliseconds kLook(4);  // how soon a cancelled run is noticed
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point now = Clock::now();
    Status status = device.Wait(event, std::min(control.deadline, now + kLook));
    if (status.code() != Code::kDeadlineExceeded) return status;
    ONCILLA_TRY(MayWait(control, begin, "an upload"));
  }
}

}  // namespace oncilla
