// Why a run ends early, in words.
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

}  // namespace oncilla
