// Waiting for uploads within a run's bounds.
#include "engine/compile/run_control.h"

namespace oncilla {

Status AwaitUpload(Device& device, const EventPtr& event, const RunControl& control) {
  constexpr std::chrono::milliseconds kLook(4);  // how soon a cancelled run is noticed
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    Status status = device.Wait(event, std::min(control.deadline, now + kLook));
    if (status.code() != Code::kDeadlineExceeded) return status;
    ONCILLA_TRY(MayGoOn(control));
    if (control.watchdog.count() > 0 && now - begin >= control.watchdog) {
      return Error(Code::kUnavailable, "the device has not taken weights for ",
                   control.watchdog.count(), " ms and is given up");
    }
  }
}

}  // namespace oncilla
