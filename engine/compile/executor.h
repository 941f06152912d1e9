// Executor: runs one compiled graph for whatever shapes come: finds or makes plans, keeps a bounded
// set of instances of each, walks through segments and computes host nodes between them. Functions
// that control flow calls have executors of their own (control.cc).
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/instance.h"
#include "engine/compile/variables.h"

namespace oncilla {

struct ExecutorOptions {
  size_t max_plans = 32;               // kept, least recently used first out
  int max_instances = 4;               // of one plan: so many runs at once; more wait
  VariableStore* variables = nullptr;  // the model's, when its graphs have any
  // Counts the memory of runs that were given up with work that hangs; may be null.
  std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr;
  // One per device, of the session's; empty: nothing stays on devices.
  std::vector<std::shared_ptr<DeviceLink>> links = {};
  // Whether constants are still what they were: asked before and behind the making of a plan, which
  // reads some of them. Empty: they are.
  std::function<Status()> constants_unchanged = nullptr;
};

class EnqueuedRun;
struct EnqueueRequest;
struct HostLine;

struct ExecutorCounters {
  int64_t plans_made = 0;
  int64_t instances_made = 0;
  size_t plans_kept = 0;
};

// Thread-safe: runs may overlap.
class Executor {
 public:
  // `devices` and `pools` are the session's, index 0 the CPU, and must outlive the executor.
  Executor(std::shared_ptr<const CompiledGraph> compiled, std::span<Device* const> devices,
           std::vector<Pool*> pools, OwnerId owner, ExecutorOptions options);
  ~Executor();

  // Feeds in the order of the graph's inputs, results in the order of its outputs. Feeds of other
  // dtypes or shapes than the graph accepts are InvalidArgument, naming the input.
  Result<std::vector<Tensor>> Run(std::span<const Tensor> feeds, const RunControl& control);
  // The same with values on devices. Feeds may be on any device of this session: they are used
  // there, or copied to where they are needed. Results for which `keep` is true stay where they are
  // computed; it may be empty. InvalidArgument for a feed of another session, FailedPrecondition
  // for one of a closed session.
  Result<std::vector<RunValue>> RunValues(std::span<const RunValue> feeds,
                                          const std::vector<bool>& keep, const RunControl& control);

  // Enqueues a run on a queue of the application's (enqueue.h). Unimplemented, by name, for a graph
  // that needs the host or another device; InvalidArgument for feeds and targets that are not all
  // on one device.
  Result<EnqueuedRun> Enqueue(const EnqueueRequest& request);

  // The plan that feeds of these descriptions would take first, for inspect; contents are read only
  // where they fix shapes.
  Result<std::shared_ptr<const Plan>> PlanFor(std::span<const Tensor> feeds);

  // A plan of its own for these feeds, made quickly and kept nowhere: its arenas are no smaller
  // than those of the plan that a run would take.
  Result<std::shared_ptr<const Plan>> PlanAlone(std::span<const Tensor> feeds,
                                                const EarlyEnd& end = {});
  // The plans that are kept, with how many instances of each hold memory and how many of those
  // idle.
  struct KeptPlan {
    std::shared_ptr<const Plan> plan;
    int instances = 0;
    int idle = 0;
  };
  std::vector<KeptPlan> KeptPlans() const;
  // Per input of the graph: the one device other than the host's that reads it; 0 when there are
  // several or none, or its contents fix shapes.
  std::vector<int> InputDevices() const;

  const CompiledGraph& compiled() const { return *compiled_; }
  // Of this graph and its functions together.
  ExecutorCounters counters() const;
  // Lets go of idle instances and their memory.
  void DropIdle();

 private:
  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;
  Result<std::shared_ptr<const Plan>> FindOrMakePlan(const SegmentStart& start);
  // Unavailable for a device that has not finished the work of an earlier run for as long as the
  // watchdog allows.
  Status LookAfterLate(const RunControl& control) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // May bring feeds to the host, whose contents fix shapes.
  Result<SegmentStart> Start(std::span<RunValue> feeds, const RunControl& control) const;
  // The index of the device that the value is on; 0: the host.
  Result<int> DeviceOf(const RunValue& value) const;
  Result<Tensor> ToHost(const RunValue& value, const RunControl& control) const;
  // Per output of this body: it may stay on a device, for the next round reads it only there.
  std::vector<bool> RoundsOnDevice() const;
  std::string KeyOf(const SegmentStart& start) const;
  Result<EntryPtr> FindOrMake(const SegmentStart& start, const EarlyEnd& end);
  Result<std::unique_ptr<Instance>> Acquire(Entry& entry, const RunControl& control);
  void Release(Entry& entry, std::unique_ptr<Instance> instance, bool reusable);
  Result<std::shared_ptr<HostLine>> FindOrMakeLine(std::shared_ptr<const Plan> plan, int device,
                                                   void* queue);
  void CloseLines(bool all);
  Status RunHostNodes(const Plan& plan, std::vector<RunValue>& values, const RunControl& control);
  Result<std::vector<RunValue>> RunControlNode(const Node& node, std::span<const RunValue> in,
                                               const RunControl& control);
  Result<std::vector<RunValue>> RunIf(const Node& node, std::span<const RunValue> in,
                                      const RunControl& control);
  Result<std::vector<RunValue>> RunWhile(const Node& node, std::span<const RunValue> in,
                                         const RunControl& control);
  Result<std::vector<RunValue>> Call(const std::string& function,
                                     std::span<const RunValue> arguments,
                                     const std::vector<bool>& keep, const RunControl& control);

  const std::shared_ptr<const CompiledGraph> compiled_;
  const std::span<Device* const> devices_;
  const std::vector<Pool*> pools_;
  const OwnerId owner_;
  const ExecutorOptions options_;
  std::map<std::string, std::unique_ptr<Executor>, std::less<>> functions_;
  mutable Mutex mutex_;
  std::list<EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::map<std::string, std::list<EntryPtr>::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  // Given up at a deadline with work still under way; looked after at the next run.
  struct Late {
    std::unique_ptr<Instance> instance;
    Deadline since;
  };
  std::vector<Late> quarantine_ ABSL_GUARDED_BY(mutex_);
  ExecutorCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<HostLine>> lines_ ABSL_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace oncilla
