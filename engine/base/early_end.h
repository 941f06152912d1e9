// EarlyEnd: what may end a piece of work before it is done: a deadline, two wishes, and for how
// long a device may finish nothing.
//
// It interrupts nothing: who works asks reached() wherever it could stop. That stays true once it
// is, so that work of which a part was left out is known by asking when it is over.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>

#include "engine/base/cancellation.h"
#include "engine/base/status.h"

namespace oncilla {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

// `time` after `begin`; kNoDeadline for more than the clock can count.
inline Deadline DeadlineAfter(Deadline begin, std::chrono::milliseconds time) {
  const auto room = std::chrono::duration_cast<std::chrono::milliseconds>(
      Deadline::max() - std::max(begin, Deadline()));
  return time >= room ? kNoDeadline : begin + time;
}

struct EarlyEnd {
  Deadline deadline = kNoDeadline;
  CancellationToken cancel = {};  // the caller's
  CancellationToken stop = {};    // the session's
  // A device or driver that finishes nothing for so long is given up; 0: it may take its time.
  std::chrono::milliseconds watchdog{0};
  // What the deadline came from, for messages; 0: not known.
  std::chrono::milliseconds time_limit{0};

  // Looks at the clock only where there is a deadline.
  bool reached() const {
    return cancel.cancelled() || stop.cancelled() ||
           (deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline);
  }
  // Whether anything could end the work.
  bool possible() const {
    return deadline != kNoDeadline || cancel.possible() || stop.possible() || watchdog.count() > 0;
  }
};

// Cancelled or DeadlineExceeded, for a run, once the end is reached.
Status MayGoOn(const EarlyEnd& end);
// The same for who has waited for a device since `since`: Unavailable, naming `what` was waited for
// ("a compilation"), once that is longer ago than the watchdog allows.
Status MayWait(const EarlyEnd& end, Deadline since, std::string_view what);

}  // namespace oncilla
