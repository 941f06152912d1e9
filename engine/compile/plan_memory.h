// The composition of a plan's memory: the step at which its peak occurs, what is live there, and
// how the bytes divide over ops and dtypes. Computed from the plan alone: nothing has to run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/compile/plan.h"

namespace oncilla {

// A part of an arena that is live at the peak.
struct HeldBytes {
  std::string node;  // whose output, scratch or copy it is, by source name
  std::string op;
  int64_t bytes = 0;
};

// What the steps of one op type allocate in an arena over the whole plan; not all of it is live at
// the same time.
struct OpBytes {
  std::string op;
  int64_t bytes = 0;
  int64_t largest = 0;
  std::string largest_node;
  int count = 0;
};

struct PlanMemory {
  int device = 0;
  int64_t arena_bytes = 0;  // the size of the arena
  int64_t peak_bytes = 0;   // the most live bytes; the rest of the arena is lost to packing
  std::string peak_node;    // the node of that step; empty when it is a copy between devices
  std::string peak_op;
  std::vector<HeldBytes> held;        // at the peak, largest first
  std::vector<OpBytes> ops;           // largest first
  std::map<DType, int64_t> by_dtype;  // at the peak; scratch is not among it
};

// Per device on which the plan takes memory.
std::vector<PlanMemory> MemoryOf(const Plan& plan);

// The host memory that a run of this plan allocates beside the arenas: its results, except those
// that stay on a device. The size of strings is known only afterwards.
int64_t ResultBytes(const Plan& plan);

// "peak 12.3 MiB while node 'conv5' (Conv) runs: holds 6.1 MiB of 'conv4' (Conv), ..", with at most
// `most` of what is held.
std::string PeakText(const PlanMemory& memory, size_t most = 4);
// "f32 12.3 MiB, i64 1.0 KiB".
std::string DTypesText(const std::map<DType, int64_t>& bytes);

}  // namespace oncilla
