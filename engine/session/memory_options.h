// How much of a device a session may take, and when: part of SessionOptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace oncilla {

// Of the limit at most one is given, of what is taken beforehand at most one. Nothing given: nearly
// all of the device, taken as models need it.
struct DeviceMemoryOptions {
  int64_t limit_bytes = 0;
  double limit_fraction = 0;        // of the device's memory, in (0, 1]
  int64_t free_minus_bytes = -1;    // what is free when the device is opened, less this
  int64_t preallocate_bytes = 0;    // taken when the device is opened, given back by Trim
  double preallocate_fraction = 0;  // of the limit, in (0, 1]; 1: all of it
  int64_t reserve_bytes = 0;        // taken when the device is opened, and kept by Trim too
  // Of the free bytes in the pool, the most that may lie outside the largest free piece: above it,
  // between runs, what no run holds goes back. In (0, 1); 0: no such cap.
  double fragmentation = 0;

  friend bool operator==(const DeviceMemoryOptions&, const DeviceMemoryOptions&) = default;
};

// What a run tries when its memory is not there.
enum class OutOfMemoryStep {
  kTrim,   // idle plans of all models of the session give theirs back
  kWait,   // until other runs of the session have ended
  kSplit,  // the batch is run in parts, where samples are independent of each other
};

// Steps are tried in order, each followed by another attempt; after the last one the run fails. A
// run that changes variables is attempted once.
struct OutOfMemoryPolicy {
  std::vector<OutOfMemoryStep> steps = {OutOfMemoryStep::kTrim};
  std::chrono::milliseconds wait{10'000};  // the longest

  friend bool operator==(const OutOfMemoryPolicy&, const OutOfMemoryPolicy&) = default;
};

}  // namespace oncilla
