// Instance: the third stage. A plan bound to memory: its arenas, recordings with fixed operands,
// and a queue per device. It serves one run at a time and is not thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/compile/plan.h"
#include "engine/compile/run_control.h"
#include "engine/memory/pool.h"
#include "engine/run/device_tensor.h"
#include "engine/tensor/result_memory.h"

namespace oncilla {

// One step as it ran, for profiles.
struct StepProfile {
  std::string node;
  std::string op;
  std::string kernel;
  int device = 0;
  int64_t start_ns = 0;  // on the host's steady clock, as exactly as is known
  int64_t end_ns = 0;    // both 0 where the driver does not report times
  int64_t output_bytes = 0;
  int64_t live_bytes = 0;  // of the device's arena while it runs
};

// Another activity of a profiled run, on the host's steady clock.
struct TraceSpan {
  enum Kind : uint8_t { kHost, kUpload, kDownload };
  Kind kind = kHost;
  std::string name;
  int device = 0;
  int64_t asked_ns = 0;  // for a copy: when the host submitted it
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t bytes = 0;
  bool by_device = false;  // begin and end are the driver's own stamps
};

// The state of a device's pool at one moment, for traces.
struct PoolSample {
  std::string device;
  int64_t at_ns = 0;
  int64_t in_use_bytes = 0;
  int64_t pool_bytes = 0;
  double fragmentation = 0;
};
void SamplePool(const Pool& pool, const std::string& device, std::vector<PoolSample>& samples);

// The cost of a run, summed over its segments.
struct RunStats {
  int64_t copies = 0;
  int64_t copied_bytes = 0;
  // Copies within a device, made because an operand or a result could not be used in place.
  int64_t device_copies = 0;
  int64_t device_copied_bytes = 0;
  int segments = 0;
  std::vector<NodeFate> fates;     // per node of the compiled graph, of the last run
  std::vector<StepProfile> steps;  // only when profiling
  std::vector<TraceSpan> spans;    // likewise
  std::vector<PoolSample> pools;   // likewise: around each segment
  // The fates of the nodes of the functions that control flow called.
  std::map<const CompiledGraph*, std::vector<NodeFate>> functions;
};

// Memory of the application for the results of a graph. A run writes results that the device
// computes in memory of their own directly there; the caller copies the others.
struct OutputTargets {
  const CompiledGraph* graph = nullptr;
  std::span<const DeviceTensor> targets = {};  // per output of the graph; invalid: none
  // The same on the host, for what the CPU computes; empty: none. Other devices could still write
  // there after a run that ends early, so their results are never read back to it directly.
  std::span<const std::span<std::byte>> host = {};
};

struct InstanceOptions {
  std::span<Pool* const> pools;  // one per device
  OwnerId owner = kNoOwner;
  std::span<const std::shared_ptr<DeviceLink>> links = {};  // one per device, for what stays there
  std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr;  // see ExecutorOptions
  std::shared_ptr<ResultMemory> results = nullptr;                  // null: none is kept
};

class Instance {
 public:
  // Allocates the arenas, charged to the owner. ResourceExhausted when they do not fit. Everything
  // given must outlive the instance.
  static Result<std::unique_ptr<Instance>> Create(std::shared_ptr<const Plan> plan,
                                                  std::span<Device* const> devices,
                                                  const InstanceOptions& options,
                                                  const RunControl& control);
  ~Instance();

  // Inputs in the order of plan().inputs; results in the order of plan().outputs. After a failure,
  // Cancelled and DeadlineExceeded included, work may still be in progress: keep the instance until
  // Idle(). When a device has finished nothing for as long as the watchdog allows, the failure is
  // Unavailable and names the device and the nodes at which it stopped.
  Result<std::vector<RunValue>> Run(std::span<const RunValue> inputs, const RunControl& control);
  bool Idle() { return BusyDevice() < 0; }
  // A device that is still working for it; -1: none.
  int BusyDevice();
  // From now on, commands for the device go to this queue of the application. No work may be in
  // progress.
  void UseQueue(int device, std::unique_ptr<Queue> queue);
  // Enqueues the plan, for which CheckEnqueueable() (enqueue.h) must be OK, and returns at once.
  // Inputs in the order of plan().inputs, targets in that of plan().outputs. The run begins after
  // what was enqueued before, so the order of the queue keeps runs apart.
  Result<std::vector<EventPtr>> Enqueue(int device, std::span<const RunValue> inputs,
                                        std::span<const DeviceTensor> targets, bool profile);
  // The steps of such a run with `profile`, after it is over, from its events; on the device's
  // clock.
  std::vector<StepProfile> StepsOf(int device, std::span<const EventPtr> events) const;
  const Plan& plan() const { return *plan_; }

 private:
  Instance() = default;
  Status TakeArenas(std::span<Pool* const> pools, const RunControl& control);
  Status OpenQueue(int device);
  Step Bind(const PlannedStep& planned) const;
  Status RecordStretch(size_t index);
  Status Send(const PlannedUpload& upload, const RunControl& control);

  struct State;
  class Walk;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<State> state_;
};

}  // namespace oncilla
