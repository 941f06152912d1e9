// Why a run ends early, in words; waiting that ends with it.
#include "engine/compile/run_control.h"

namespace oncilla {

Status MayGoOn(const RunControl& control) {
  if (control.cancel.cancelled()) return Error(Code::kCancelled, "the run was cancelled");
  if (control.stop.cancelled()) {
    return Error(Code::kCancelled, "the run was cancelled: its session is being closed");
  }
  if (control.deadline != kNoDeadline && std::chrono::steady_clock::now() >= control.deadline) {
    return Error(Code::kDeadlineExceeded, "the run took longer than its time limit");
  }
  return Status();
}

Status AwaitUpload(Device& device, const EventPtr& event, const RunControl& control) {
  constexpr std::chrono::milliseconds kLook(4);  // how soon a cancelled run is noticed
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point now = Clock::now();
    Status status = device.Wait(event, std::min(control.deadline, now + kLook));
    if (status.code() != Code::kDeadlineExceeded) return status;
    ONCILLA_TRY(MayGoOn(control));
    if (control.watchdog.count() > 0 && now - begin >= control.watchdog) {
      return Error(Code::kUnavailable, "the device has taken no upload for ",
                   control.watchdog.count(), " ms and is given up");
    }
  }
}

}  // namespace oncilla
