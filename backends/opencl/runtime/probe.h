// Probe: determines what a device really supports, by compiling and running tiny kernels and
// comparing the results. A claim that fails is dropped with a note, and portable kernels are used;
// a device that fails the basics cannot be used, with the reason.
//
// The result is text that a cache can keep: probing costs tens of milliseconds and, on devices that
// compile slowly, seconds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/recipes/source.h"
#include "backends/opencl/runtime/capabilities.h"
#include "backends/opencl/runtime/discovery.h"

namespace oncilla::opencl {

struct ProbeResult {
  std::string failure;  // why the device cannot be used; empty when it can
  bool fp64 = false;
  bool fp16 = false;
  bool local_groups = false;
  bool profiling = false;
  int64_t max_work_group = 1;  // of a kernel with barriers and local memory
  int64_t sub_group = 0;       // lanes of sub-groups with block reads and shuffles; 0: none
  ByteDot byte_dot = ByteDot::kPortable;
  MatrixUnit matrix_unit = MatrixUnit::kNone;  // kPtx or none
  int64_t max_loop_trips = 0;                  // loops stop at this many trips; 0: no cap was seen
  std::vector<std::string> notes;              // claims that did not hold
  // Some claim failed for lack of memory or of the device: another attempt may succeed. Not cached.
  bool of_the_moment = false;

  friend bool operator==(const ProbeResult&, const ProbeResult&) = default;
};

// One "name=value" per line. Parsing fails (nothing) on anything that ToText did not write.
std::string ToText(const ProbeResult& result);
std::optional<ProbeResult> ParseProbe(const std::string& text);

// The kernels that are run; tests replace them by wrong ones.
struct ProbeSources {
  const Source* basics;
  const Source* fp64;
  const Source* fp16;
  const Source* sub_group;
  const Source* dot4;
  const Source* matrix;
  static ProbeSources Embedded();
};

// Opens a context and a queue of its own. Waits at most `seconds` for each kernel; a device that
// hangs is reported as unusable and its objects are abandoned.
ProbeResult Probe(const FoundDevice& device, const ProbeSources& sources = ProbeSources::Embedded(),
                  int seconds = 20);

}  // namespace oncilla::opencl
