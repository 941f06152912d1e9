// EarlyEnd: what may end a piece of work before it is done: a deadline, and two wishes.
//
// It interrupts nothing: who works asks reached() wherever it could stop. That stays true once it
// is, so that work of which a part was left out is known by asking when it is over.
#pragma once

#include <chrono>

#include "engine/base/cancellation.h"
#include "engine/base/status.h"

namespace oncilla {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

struct EarlyEnd {
  Deadline deadline = kNoDeadline;
  CancellationToken cancel = {};  // the caller's
  CancellationToken stop = {};    // the session's

  // Looks at the clock only where there is a deadline.
  bool reached() const {
    return cancel.cancelled() || stop.cancelled() ||
           (deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline);
  }
};

// Cancelled or DeadlineExceeded, for a run, once the end is reached.
Status MayGoOn(const EarlyEnd& end);

}  // namespace oncilla
