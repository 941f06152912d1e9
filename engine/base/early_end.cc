// The texts of statuses for runs that end early.
#include "engine/base/early_end.h"

namespace oncilla {

Status MayGoOn(const EarlyEnd& end) {
  if (!end.reached()) return Status();
  if (end.cancel.cancelled()) return Error(Code::kCancelled, "the run was cancelled");
  if (end.stop.cancelled()) {
    return Error(Code::kCancelled, "the run was cancelled: its session is being closed");
  }
  if (end.time_limit.count() <= 0) {
    return Error(Code::kDeadlineExceeded, "the run took longer than its time limit");
  }
  return Error(Code::kDeadlineExceeded, "the run took longer than its time limit of ",
               end.time_limit.count(), " ms");
}

Status MayWait(const EarlyEnd& end, Deadline since, std::string_view what) {
  ONCILLA_TRY(MayGoOn(end));
  if (end.watchdog.count() <= 0) return Status();
  if (std::chrono::steady_clock::now() < DeadlineAfter(since, end.watchdog)) return Status();
  return WithStage(Error(Code::kUnavailable, what, " has not finished in ", end.watchdog.count(),
                         " ms, and the device is abandoned"),
                   Stage::kDevice);
}

}  // namespace oncilla
