// What a plan's memory is made of: which step its peak falls on, what is held there, and how the
// bytes divide over ops and dtypes. Read from the plan alone: nothing has to run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/compile/plan.h"

namespace oncilla {

// Something of an arena that is live at the peak.
struct HeldBytes {
  std::string node;  // whose output, scratch or copy it is, by source name
  std::string op;
  int64_t bytes = 0;
};

// What the steps of one op put into an arena, over the whole plan: not all of it at once.
struct OpBytes {
  std::string op;
  int64_t bytes = 0;
  int64_t largest = 0;
  std::string largest_node;
  int count = 0;
};

struct PlanMemory {
  int device = 0;
  int64_t arena_bytes = 0;  // what the plan takes
  int64_t peak_bytes = 0;   // live at once, at most: the rest is lost to packing
  std::string peak_node;    // during whose step; empty when that is a copy between devices
  std::string peak_op;
  std::vector<HeldBytes> held;        // at the peak, largest first
  std::vector<OpBytes> ops;           // largest first
  std::map<DType, int64_t> by_dtype;  // at the peak; scratch is not among it
};

// Per device on which the plan takes memory.
std::vector<PlanMemory> MemoryOf(const Plan& plan);

// What a run of this plan makes in host memory beside the arenas: its results, as far as they are
// not left on a device. The text of strings is known only when they are.
int64_t ResultBytes(const Plan& plan);

// "peak 12.3 MiB while node 'conv5' (Conv) runs: holds 6.1 MiB of 'conv4' (Conv), ..", with at most
// `most` of what is held.
std::string PeakText(const PlanMemory& memory, size_t most = 4);
// "f32 12.3 MiB, i64 1.0 KiB".
std::string DTypesText(const std::map<DType, int64_t>& bytes);

}  // namespace oncilla
