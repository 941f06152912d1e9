// RunControl: the limits of a run, and what it records.
//
// A run ends early at its deadline, when its caller cancels it, when its session is closed without
// waiting for runs, or when a device has finished nothing for as long as the watchdog allows. It
// checks these between segments, stretches, host nodes and loop iterations, and while it waits. The
// CPU checks the first three within a step as well: it gets them with each submission.
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
  bool profile = false;  // record what the host does
  bool stamps = true;    // with `profile`, record the devices' times of steps and copies too
  RunStats* stats = nullptr;
  const OutputTargets* into = nullptr;  // where results are to be written, if they can be

  // Whether the run may return while a device is still working. Then nothing that a device reads or
  // writes late may be the caller's memory.
  bool may_end_early() const { return deadline != kNoDeadline || cancel.possible(); }
};

// Waits for an upload made while a run is being prepared, as long as the run may continue and no
// longer than the watchdog allows. Unavailable after that, also for a run with a deadline: nothing
// else is in progress.
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

// After the queue of the event is destroyed: whether the work was abandoned, so that the device may
// still read and write its memory at any time.
bool WasGivenUp(Device& device, const EventPtr& event);
// Keeps memory that a device may still write to until the process ends.
void KeepForever(std::shared_ptr<const void> memory);

}  // namespace oncilla
