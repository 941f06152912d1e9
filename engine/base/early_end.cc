// Why a run ends early, in words.
#include "engine/base/early_end.h"

namespace oncilla {

Status MayGoOn(const EarlyEnd& end) {
  if (!end.reached()) return Status();
  if (end.cancel.cancelled()) return Error(Code::kCancelled, "the run was cancelled");
  if (end.stop.cancelled()) {
    return Error(Code::kCancelled, "the run was cancelled: its session is being closed");
  }
  return Error(Code::kDeadlineExceeded, "the run took longer than its time limit");
}

}  // namespace oncilla
