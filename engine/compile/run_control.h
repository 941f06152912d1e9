// RunControl: how a run is to be done, and what may end it early.
//
// A run ends early at its deadline, when its caller cancels it, when its session is closed in a
// hurry, or when a device has finished nothing for as long as the watchdog allows. It looks at
// these between segments, stretches, host nodes and rounds of a loop, and while it waits. The CPU
// looks at the first three within a step as well: it gets them with each submission.
#pragma once

#include <algorithm>
#include <chrono>

#include "engine/base/early_end.h"
#include "engine/base/mutex.h"
#include "engine/device/device.h"

namespace oncilla {

struct RunStats;
struct OutputTargets;

struct RunControl : EarlyEnd {
  bool profile = false;  // what the host does is noted
  bool stamps = true;    // and, with `profile`, what devices tell of steps and copies
  RunStats* stats = nullptr;
  const OutputTargets* into = nullptr;  // where results are to be written, if they can be

  // The caller may have its memory back while a device is still at work: nothing that a device
  // reads or writes late may be the caller's own.
  bool may_end_early() const { return deadline != kNoDeadline || cancel.possible(); }
};

// Waits for an upload made while a run gets ready, as long as the run may go on and for no longer
// than the watchdog allows (Unavailable then, with a deadline too: nothing else is under way).
Status AwaitUpload(Device& device, const EventPtr& event, const RunControl& control);

// Waits for `ready` as Mutex::Await does, at most until the run should end. False when it should.
template <class Ready>
bool AwaitReady(Mutex& mutex, const RunControl& control, const Ready& ready)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  constexpr std::chrono::milliseconds kLook(2);  // how soon a cancelled run is noticed
  const bool looks = control.cancel.possible() || control.stop.possible();
  if (!looks && control.deadline == kNoDeadline) {
    mutex.Await(ready);
    return true;
  }
  for (;;) {
    const Deadline look = looks ? std::chrono::steady_clock::now() + kLook : kNoDeadline;
    if (mutex.AwaitUntil(std::min(look, control.deadline), ready)) return true;
    if (!MayGoOn(control).ok()) return false;
  }
}

}  // namespace oncilla
