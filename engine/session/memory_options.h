// How much of a device's memory a session may use, and when it allocates it: part of
// SessionOptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/options.h"

namespace oncilla {

// At most one form of the limit may be given, and one of the preallocation. If nothing is given,
// the limit is nearly all of the device, and memory is allocated as models need it.
struct DeviceMemoryOptions {
  int64_t limit_bytes = 0;
  double limit_fraction = 0;        // of the device's memory, in (0, 1]
  int64_t free_minus_bytes = -1;    // what is free when the device is opened, minus this
  int64_t preallocate_bytes = 0;    // allocated when the device is opened, freed by Trim
  double preallocate_fraction = 0;  // of the limit, in (0, 1]; 1: all of it
  int64_t reserve_bytes = 0;        // allocated when the device is opened, and kept by Trim too
  // The largest share of the pool's free bytes that may lie outside the largest free chunk: above
  // it, memory that no run uses is freed between runs. In (0, 1); 0: no such limit.
  double fragmentation = 0;
  // How the session's pool grows. 0: by exactly what is requested, which takes the least memory.
  // Otherwise by regions: the first of so many bytes, each further one larger by the factor up to
  // the cap. That needs fewer allocations from a slow driver, at the price of unused memory.
  int64_t growth_first_bytes = 0;
  double growth_factor = 2;      // 1 to 16
  int64_t growth_cap_bytes = 0;  // 0: none

  static void Fields(auto& self, auto&& field) {
    field({.name = "limit_bytes",
           .doc = "The most that the session takes on the device; at most one of the three limits "
                  "is given",
           .least = 1,
           .bytes = true},
          self.limit_bytes);
    field({.name = "limit_fraction",
           .doc = "The same as a share of the device's memory",
           .least = 0,
           .most = 1},
          self.limit_fraction);
    field({.name = "free_minus_bytes",
           .doc = "The same as what is free when the device is opened, less so much for others",
           .least = 0,
           .bytes = true},
          self.free_minus_bytes);
    field({.name = "preallocate_bytes",
           .doc = "Taken when the device is opened and kept from others",
           .least = 0,
           .bytes = true},
          self.preallocate_bytes);
    field({.name = "preallocate_fraction",
           .doc = "The same as a share of the limit; 1 for all of it",
           .least = 0,
           .most = 1},
          self.preallocate_fraction);
    field({.name = "reserve_bytes",
           .doc = "Taken when the device is opened, and never given back by Trim",
           .least = 0,
           .bytes = true},
          self.reserve_bytes);
    field({.name = "fragmentation",
           .doc = "The largest share of the free bytes that may lie outside the largest free piece "
                  "between runs; 0: any. For sessions that change shapes for days",
           .least = 0,
           .most = 1},
          self.fragmentation);
    field(
        {.name = "growth_first_bytes",
         .doc = "Take memory in regions, the first of so many bytes, instead of what is asked for; "
                "0: to size. For drivers that are slow to give memory",
         .least = 0,
         .bytes = true},
        self.growth_first_bytes);
    field({.name = "growth_factor",
           .doc = "How much larger each further region is",
           .least = 1,
           .most = 16},
          self.growth_factor);
    field({.name = "growth_cap_bytes",
           .doc = "The largest such region, unless more is asked for; 0: no cap",
           .least = 0,
           .bytes = true},
          self.growth_cap_bytes);
  }
  friend bool operator==(const DeviceMemoryOptions&, const DeviceMemoryOptions&) = default;
};

// What a run tries when its memory cannot be allocated.
enum class OutOfMemoryStep {
  kTrim,   // free the memory of idle plans of all models of the session
  kWait,   // wait until other runs of the session have ended
  kSplit,  // run the batch in parts, if samples are independent of each other
  kFail,   // nothing: what follows the last step anyway
};
inline constexpr std::pair<OutOfMemoryStep, std::string_view> kOutOfMemoryStepNames[] = {
    {OutOfMemoryStep::kTrim, "trim"},
    {OutOfMemoryStep::kWait, "wait"},
    {OutOfMemoryStep::kSplit, "split"},
    {OutOfMemoryStep::kFail, "fail"},
};

// Steps are tried in order, each followed by another attempt; after the last one the run fails. A
// run that changes variables is attempted once.
struct OutOfMemoryPolicy {
  std::vector<OutOfMemoryStep> steps = {OutOfMemoryStep::kTrim};
  std::chrono::milliseconds wait{10'000};  // the longest

  static void Fields(auto& self, auto&& field) {
    field({.name = "steps",
           .doc = "What a run tries in order when its memory is not there: trim, wait, split; fail "
                  "alone for none of them"},
          self.steps, kOutOfMemoryStepNames);
    field({.name = "wait_ms",
           .doc = "How long the step wait waits for other runs",
           .least = 0,
           .most = 86'400'000},
          self.wait);
  }
  friend bool operator==(const OutOfMemoryPolicy&, const OutOfMemoryPolicy&) = default;
};

}  // namespace oncilla
