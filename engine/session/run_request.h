// The request of a run, and its result: tensors by name, and a report of what ran where.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/executor.h"
#include "engine/session/out_of_memory.h"
#include "engine/session/session_options.h"

namespace oncilla {

using NamedTensor = std::pair<std::string, Tensor>;
using NamedRunValue = std::pair<std::string, RunValue>;

// As in tensorflow.RunOptions: kSoftware records the host's activities and changes of memory,
// kHardware the times of steps and copies by the devices' own clocks, kFull both.
enum class TraceLevel { kNone = 0, kSoftware = 1, kHardware = 2, kFull = 3 };

struct RunRequest {
  std::string signature;  // empty: the default one
  std::vector<NamedTensor> feeds;
  std::vector<std::string> fetches;       // empty: all outputs of the signature, none with targets
  std::vector<std::string> targets = {};  // nodes of a TensorFlow graph to run for their effects
  std::chrono::milliseconds timeout{0};   // 0: none
  bool profile = false;                   // the report records everything that ran (trace.h)
  TraceLevel trace = TraceLevel::kNone;   // records less than `profile`
  // The device to run on, except for nodes that Place() put elsewhere; empty: the session's device.
  // Graphs are kept per device; weights stay on all devices on which a run needed them.
  std::string device = {};
  std::optional<FallbackPolicy> fallback = std::nullopt;  // the session's, unless given
  // Feeds on devices of the model's session, beside `feeds`.
  std::vector<std::pair<std::string, DeviceTensor>> device_feeds = {};
  // Results that stay on the device that computes them (RunResult::kept): these, or all.
  std::vector<std::string> keep = {};
  bool keep_all = false;
  CancellationToken cancel = {};  // of CancellationToken::Create(); cancelling ends the run
  // Memory of the caller for outputs, of exactly their sizes, which must not overlap another output
  // or a feed. The CPU computes its results there directly if it is aligned to 64 bytes; all others
  // are copied there at the end. The result's tensors are views of it. After a failure its contents
  // are undefined, and nothing writes there any more.
  std::vector<std::pair<std::string, std::span<std::byte>>> into = {};
};

// A device on which a run was to be made, and why it was not.
struct FallbackStep {
  std::string device;
  Status why;
};

// What ran where, why, and what it cost.
struct RunReport {
  std::vector<std::string> devices;
  std::vector<int> nodes_on;                          // per device, of those that ran
  std::vector<std::pair<std::string, int>> refusals;  // why nodes are not on the preferred device
  int preferred = 0;                                  // index into devices
  std::vector<std::pair<std::string, int>> relaxed;   // why nodes are not where they were requested
  std::vector<FallbackStep> fallbacks;                // before this run, in order
  MemoryOutcome memory;                               // how its memory was obtained
  int host_nodes = 0;                                 // strings, sizes that depend on data
  int planned_nodes = 0;                              // shape arithmetic, folded while planning
  RunStats stats;
  // Driver calls during the run, over all of the session's devices; includes those of overlapping
  // runs.
  int64_t flushes = 0;
  int64_t waits = 0;
  int64_t wall_ns = 0;
  bool traced = false;                        // a trace level was set
  int64_t begin_ns = 0;                       // on the host's steady clock
  std::vector<PoolSample> pool_samples = {};  // before, during, after; only when profiling

  // "GPU:0 ran 120 nodes, CPU:0 ran 3 nodes, 18 computed while planning (2: opencl has no TopK for
  // i8); 2 copies, 0.60 MB"
  std::string Line() const;
};

struct RunResult {
  std::vector<NamedTensor> outputs;  // in the order requested; invalid where the result is kept
  // Per output, valid if it stayed on its device; empty when none was requested. Results that the
  // CPU computed, strings, and tensors without bytes are in `outputs` even so.
  std::vector<DeviceTensor> kept;
  RunReport report;
};

}  // namespace oncilla
