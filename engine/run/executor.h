// Executor: runs one compiled graph for inputs of any shapes. It finds or makes plans, keeps a
// bounded set of instances of each, runs segment after segment, and computes host nodes between
// them. Functions that control flow calls have executors of their own (control.cc).
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/run/instance.h"
#include "engine/run/variables.h"

namespace oncilla {

struct ExecutorOptions {
  size_t max_plans = 32;               // kept; the least recently used is dropped first
  int max_instances = 4;               // of one plan, so as many runs at once; others wait
  VariableStore* variables = nullptr;  // the model's, when its graphs have any
  // Counts the memory that was abandoned because a run's work hangs; may be null.
  std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr;
  // The session's links, one per device; empty: nothing stays on devices.
  std::vector<std::shared_ptr<DeviceLink>> links = {};
  // Checks that the model's files are unchanged. Called before and after making a plan, which reads
  // some constants. Empty: no check.
  std::function<Status()> constants_unchanged = nullptr;
  // Where the graph's constants are: kernels of plans read them, so that it goes after the plans.
  std::shared_ptr<const ConstantStore> constants = nullptr;
};

class EnqueuedRun;
struct EnqueueRequest;
struct HostLine;

struct ExecutorCounters {
  int64_t plans_made = 0;
  int64_t plans_refused = 0;  // tries to make one that failed
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
  // Like Run, with values on devices. Feeds may be on any device of this session: they are used
  // there, or copied to where they are needed. Results for which `keep` is true stay on the device
  // that computes them; `keep` may be empty. InvalidArgument for a feed of another session,
  // FailedPrecondition for one of a closed session.
  Result<std::vector<RunValue>> RunValues(std::span<const RunValue> feeds,
                                          const std::vector<bool>& keep, const RunControl& control);

  // Enqueues a run on a queue of the application (enqueue.h). Unimplemented, naming the node, for a
  // graph that needs the host or another device; InvalidArgument for feeds and targets that are not
  // all on one device.
  Result<EnqueuedRun> Enqueue(const EnqueueRequest& request);

  // The plan that feeds of these descriptions would take first, for inspect; contents are read only
  // where they fix shapes.
  Result<std::shared_ptr<const Plan>> PlanFor(std::span<const Tensor> feeds,
                                              const PlanProgress& progress = {});
  // Likewise, for values on devices too.
  Result<std::shared_ptr<const Plan>> PlanForValues(std::span<const RunValue> feeds,
                                                    const PlanProgress& progress = {});

  // A separate plan for these feeds, made quickly and not kept: its arenas are no smaller than
  // those of the plan that a run would use.
  Result<std::shared_ptr<const Plan>> PlanAlone(std::span<const Tensor> feeds,
                                                const EarlyEnd& end = {});
  // The plans that are kept, with the number of instances of each that hold memory, and of those
  // that are idle.
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
  // The counters of this graph and its functions together.
  ExecutorCounters counters() const;
  // Destroys idle instances and frees their memory.
  void DropIdle();

 private:
  class OneRun;
  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;
  Result<std::shared_ptr<const Plan>> FindOrMakePlan(const SegmentStart& start,
                                                     const PlanProgress& progress = {});
  // Unavailable for a device that has not finished the work of an earlier run for as long as the
  // watchdog allows.
  Status LookAfterLate(const RunControl& control) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Copies feeds whose contents fix shapes to the host.
  Result<SegmentStart> Start(std::span<RunValue> feeds, const RunControl& control) const;
  // The index of the device that the value is on; 0: the host.
  Result<int> DeviceOf(const RunValue& value) const;
  Result<Tensor> ToHost(const RunValue& value, const RunControl& control) const;
  // Per output of this loop body: whether it may stay on a device, because the next iteration reads
  // it only there.
  std::vector<bool> RoundsOnDevice() const;
  std::string KeyOf(const SegmentStart& start) const;
  // The plan of the last run's first segment if these feeds would find the same one: they are on
  // the host, of the same types and shapes, and equal where their contents fix shapes. Else null.
  // Spares the making of a key, which takes longer than a small graph.
  EntryPtr LastIfSame(std::span<const RunValue> feeds, const std::vector<bool>& keep);
  void RememberLast(std::span<const RunValue> feeds, const std::vector<bool>& keep,
                    const EntryPtr& entry);
  Result<EntryPtr> FindOrMake(const SegmentStart& start, PlanOptions options);
  void Remember(std::shared_ptr<const PlanMemo> memo) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<std::unique_ptr<Instance>> Acquire(Entry& entry, const RunControl& control);
  void Release(Entry& entry, std::unique_ptr<Instance> instance, bool reusable);
  // For a run that is enqueued: the one device of its outputs, and its start with the feeds on it.
  Result<int> TargetDevice(std::span<const DeviceTensor> into) const;
  Result<SegmentStart> StartOnDevice(std::span<RunValue> feeds, int device) const;
  Result<std::shared_ptr<HostLine>> FindOrMakeLine(std::shared_ptr<const Plan> plan, int device,
                                                   void* queue);
  void CloseLines(bool all);
  // A value that is computed or fed, or a constant; invalid for kNoValue.
  RunValue ValueOf(const std::vector<RunValue>& values, ValueId id) const;
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
  const std::shared_ptr<ResultMemory> results_ = std::make_shared<ResultMemory>();
  std::map<std::string, std::unique_ptr<Executor>, std::less<>> functions_;
  // What the key of a run's first segment is made of, for feeds on the host.
  struct LastFeed {
    TensorDesc desc;
    bool is_list = false;
    std::string element;  // of a list
    Tensor contents;      // a copy, where they fix shapes
    bool IsLike(const RunValue& feed) const;
  };
  struct LastRun {
    std::vector<LastFeed> feeds;
    std::vector<bool> keep;
    EntryPtr entry;  // null: there is none
  };
  mutable Mutex mutex_;
  LastRun last_ ABSL_GUARDED_BY(mutex_);
  std::list<EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::map<std::string, std::list<EntryPtr>::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  // Keys that no plan can be made for, with why, the newest first: runs of such sizes that have a
  // graph of their own (Executables::FindNarrower) come here first, each time.
  struct Refusal {
    std::string key;
    Status why;
  };
  std::list<Refusal> refused_ ABSL_GUARDED_BY(mutex_);
  // What the last plan of each segment left, the newest first.
  std::list<std::shared_ptr<const PlanMemo>> memos_ ABSL_GUARDED_BY(mutex_);
  // Instances of runs that ended early with work still in progress; checked at the next run.
  struct Late {
    std::unique_ptr<Instance> instance;
    Deadline since;
  };
  std::vector<Late> quarantine_ ABSL_GUARDED_BY(mutex_);
  ExecutorCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<HostLine>> lines_ ABSL_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace oncilla
