// EarlyEnd: what may end work before it is complete: a deadline, two cancellation tokens, and the
// longest time in which a device may finish nothing.
//
// It interrupts nothing: the work checks reached() wherever it could stop. Once true, that stays
// true, so checking it at the end tells whether a part of the work was left out.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>

#include "engine/base/cancellation.h"
#include "engine/base/status.h"

namespace oncilla {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

// `time` after `begin`; kNoDeadline if the clock cannot represent that.
inline Deadline DeadlineAfter(Deadline begin, std::chrono::milliseconds time) {
  const auto room = std::chrono::duration_cast<std::chrono::milliseconds>(
      Deadline::max() - std::max(begin, Deadline()));
  return time >= room ? kNoDeadline : begin + time;
}

struct EarlyEnd {
  Deadline deadline = kNoDeadline;
  CancellationToken cancel = {};  // the caller's
  CancellationToken stop = {};    // the session's
  // A device or driver that finishes nothing for this long is abandoned; 0: no such limit.
  std::chrono::milliseconds watchdog{0};
  // The limit that the deadline was computed from, for messages; 0: unknown
  std::chrono::milliseconds time_limit{0};

  // Reads the clock only if there is a deadline.
  bool reached() const {
    return cancel.cancelled() || stop.cancelled() ||
           (deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline);
  }
  // Whether anything could end the work.
  bool possible() const {
    return deadline != kNoDeadline || cancel.possible() || stop.possible() || watchdog.count() > 0;
  }
};

// For a run: Cancelled or DeadlineExceeded once the end is reached, OK before.
Status MayGoOn(const EarlyEnd& end);
// The same for a wait for a device that began at `since`: Unavailable, naming `what` was waited for
// ("a compilation"), once the wait is longer than the watchdog allows.
Status MayWait(const EarlyEnd& end, Deadline since, std::string_view what);

}  // namespace oncilla
