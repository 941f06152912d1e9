// What a run is asked for, and what it gives: tensors by name, and a report of what ran where.
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

// As in tensorflow.RunOptions: kSoftware is what the host did and how memory changed, kHardware the
// times of steps and copies by the devices' own clocks, kFull both.
enum class TraceLevel { kNone = 0, kSoftware = 1, kHardware = 2, kFull = 3 };

struct RunRequest {
  std::string signature;  // empty: the default one
  std::vector<NamedTensor> feeds;
  std::vector<std::string> fetches;       // empty: all outputs of the signature, none with targets
  std::vector<std::string> targets = {};  // nodes of a TensorFlow graph to run for their effects
  std::chrono::milliseconds timeout{0};   // 0: none
  bool profile = false;                   // the report tells what ran when (trace.h): all of it
  TraceLevel trace = TraceLevel::kNone;   // or less
  // Where to run, but for nodes that Place() put elsewhere; empty: the session's device. Graphs are
  // kept per device, weights stay on all devices that a run needed them on.
  std::string device = {};
  std::optional<FallbackPolicy> fallback = std::nullopt;  // the session's, unless given
  // Feeds on devices of the model's session, beside `feeds`.
  std::vector<std::pair<std::string, DeviceTensor>> device_feeds = {};
  // Results that stay on the device that computes them (RunResult::kept): these, or all.
  std::vector<std::string> keep = {};
  bool keep_all = false;
  CancellationToken cancel = {};  // of CancellationToken::Create(); cancelling ends the run
  // Memory of the caller for outputs, of exactly their sizes, which no other output and no feed may
  // share. What the CPU computes is computed there where it is aligned to 64 bytes; all else is
  // copied there at the end. The result's tensors are views of it. After a failure its contents
  // are not defined, and nothing writes there any more.
  std::vector<std::pair<std::string, std::span<std::byte>>> into = {};
};

// A device that a run was to be on, and why it is not.
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
  std::vector<std::pair<std::string, int>> relaxed;   // why they are not where somebody wants them
  std::vector<FallbackStep> fallbacks;                // before this run, in order
  MemoryOutcome memory;                               // what it took to find its memory
  int host_nodes = 0;                                 // strings, sizes that depend on data
  int planned_nodes = 0;                              // shape arithmetic, settled while planning
  RunStats stats;
  // What drivers were asked for meanwhile, over all of the session's devices; of other runs too
  // when some overlap.
  int64_t flushes = 0;
  int64_t waits = 0;
  int64_t wall_ns = 0;
  bool traced = false;                        // there was a trace level
  int64_t begin_ns = 0;                       // on the host's steady clock
  std::vector<PoolSample> pool_samples = {};  // before, meanwhile, after; only when profiling

  // "GPU:0 ran 120 nodes, CPU:0 ran 3 nodes, 18 computed while planning (2: opencl has no TopK for
  // i8); 2 copies, 0.60 MB"
  std::string Line() const;
};

struct RunResult {
  std::vector<NamedTensor> outputs;  // in the order asked for; invalid where the result is kept
  // Per output, valid where it stayed on its device; empty when no such thing was asked for. What
  // the CPU computed, strings, and what has no bytes is in `outputs` even so.
  std::vector<DeviceTensor> kept;
  RunReport report;
};

}  // namespace oncilla
