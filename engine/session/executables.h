// Executables: a model's compiled graphs, by the names of feeds and fetches and the preferred
// device, with the weights that those graphs read. Thread-safe.
//
// One graph is compiled at a time. The placement of nodes, the set of variables that change and the
// location of weights are fixed here; changing one of them drops the graphs, and the next runs
// compile them again.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/work_limits.h"
#include "engine/compile/turns.h"
#include "engine/import/held_source.h"
#include "engine/run/executor.h"
#include "engine/session/run_request.h"
#include "engine/session/session.h"

namespace oncilla {

// The parts of a model's memory.
struct ModelMemory {
  std::vector<ConstantStore::Kept> constants;
  std::vector<std::pair<std::string, Tensor>> variables;
  std::vector<Executor::KeptPlan> plans;
};

// Counts of compiled graphs, plans, instances and uploads, for tests and --json.
struct ModelCounters {
  int64_t graphs_compiled = 0;
  int64_t plans_made = 0;
  int64_t plans_refused = 0;
  int64_t instances_made = 0;
  int64_t constants_packed = 0;
  int64_t constant_bytes = 0;
  int64_t kernels_built = 0;  // programs, on OpenCL devices
};

// A callable's binding to the model's current graph. It is removed when that graph is dropped, and
// made again by the next call.
struct CallableState {
  struct Bound {
    std::shared_ptr<Executor> executor;
    std::vector<size_t> feed_of_input;
    std::vector<bool> keep;  // per output
  };
  Mutex mutex;
  std::shared_ptr<const Bound> bound ABSL_GUARDED_BY(mutex);
};

// Whether a graph that cannot be imported for any feeds may be imported for specific ones.
bool NeedsFeeds(const Status& imported);
// Whether a run may have failed because the graph does not fit its feeds (see FindNarrower).
bool NeedsNarrower(const Status& run);

class Executables {
 public:
  // `shared`: constants that other loads of the same files have too; may be null.
  Executables(Session& session, std::string name, HeldSource& source, StoredDevices stored_devices,
              std::shared_ptr<SharedConstants> shared);

  // The facts of a run's feeds, in the order of their names.
  using FedFacts = std::function<Facts()>;

  // The executor for these names; compiles it if there is none. `observe` sees the graph after each
  // stage, and forces a new compilation. If the graph cannot be imported for any feeds, it is
  // imported for the ranks in `fed`, else for its shapes, else for its numbers too.
  // FailedPrecondition, DeadlineExceeded or Cancelled when the run ends first; DataLoss when a file
  // of the model was changed since it was opened.
  Result<std::shared_ptr<Executor>> Find(const ImportRequest& request, int preferred,
                                         const RunControl& control,
                                         const GraphObserver& observe = nullptr,
                                         const FedFacts& fed = nullptr);

  // `executor`, whose graph is for any feeds of these names, may be unable to plan for `feeds`,
  // because it lacks what only some sizes or numbers determine (groups of a convolution, axes of
  // size one that are broadcast). Returns an executor for their shapes, else for their numbers too.
  // `fed` are their facts, in the order of request.feeds. Null if that is not the reason or does
  // not help, and after kMostMisses failed attempts in a row, so that wrong feeds do not cost a
  // compilation each.
  std::shared_ptr<Executor> FindNarrower(const ImportRequest& request, int preferred,
                                         const RunControl& control, Executor& executor,
                                         std::span<const NamedRunValue> feeds, const Facts& fed,
                                         const GraphObserver& observe = nullptr);

  // From the next run on places nodes as these requests say, in addition to earlier ones.
  void Place(std::vector<PlacementRequest> requests);
  void ClearPlacement();
  // Compacts weights that are spread over more memory than they need (Session::Defragment).
  Status Repack(const RunControl& control);
  // Frees the memory of plans that no run uses; constants stay.
  void DropIdle();

  // Registers a callable, whose binding is removed when its executor is dropped.
  void AddCallable(const std::shared_ptr<CallableState>& callable);

  // The model's state between runs: variables that some graph of it changes, and tables. Each
  // exists from the first run, or Prepare, that needs it.
  VariableStore& variables() { return variables_; }
  // Assigns for the runs that begin later. A variable that no graph changes thereby becomes one
  // that changes, and the graphs that read it are compiled again.
  Status Assign(const std::string& variable, Tensor value);
  // DataLoss when a file of the model was changed since it was opened.
  Status FilesUnchanged() const;

  StoredDevices stored_devices() const { return stored_devices_; }
  ModelCounters counters() const;
  ModelMemory memory() const;

  // Frees everything; the object cannot be used afterwards. For the end of the model.
  void Release(const DeviceCounter& count);

 private:
  // An executor, found by the names requested and by those that its graph really uses: requests
  // that differ only in unneeded inputs share one.
  struct Entry {
    std::vector<std::string> keys;  // the graph's own first
    std::shared_ptr<Executor> executor;
    // To compile it again.
    ImportRequest request;
    int preferred = 0;
  };
  // What a graph may assume about the feeds, in increasing order.
  enum class Known : uint8_t { kNames, kRanks, kShapes, kWholeNumbers, kNumbers };
  static Facts FactsOf(const Facts& fed, Known known);
  static std::string KeyOf(const ImportRequest& request);

  static constexpr size_t kMaxExecutors = 16;
  static constexpr int kMostMisses = 8;   // of FindNarrower in a row
  static constexpr size_t kMaxKeys = 16;  // per executor

  // The same for the facts in `request.fed`.
  Result<std::shared_ptr<Executor>> FindFor(const ImportRequest& request, int preferred,
                                            const RunControl& control,
                                            const GraphObserver& observe = nullptr);
  // Null when there is none.
  std::shared_ptr<Executor> FindExecutor(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<Module> Import(const ImportRequest& request, ImportRequest& taken);
  // OK where the request can be imported; nothing is compiled.
  Status TryImport(const ImportRequest& request, const RunControl& control);
  // The limits of importing and compiling: host memory, and the time of the run or of the caller.
  WorkLimits LimitsFor(const RunControl& control) const;
  Result<std::shared_ptr<Executor>> Make(Module module, int preferred, const GraphObserver& observe,
                                         const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  PlacementOptions Placement(const Module& module, int preferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  void TellUnmatched(std::span<const Graph* const> graphs,
                     std::shared_ptr<const std::vector<PlacementRequest>> requests,
                     std::string_view what);
  void LogPlacement(const CompiledGraph& compiled, int preferred) const;
  void KnowDevices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  void PlaceAnew(std::shared_ptr<const std::vector<PlacementRequest>> requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  Status PrepareVariables(const Module& module, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  // Drops the graphs that treated these resources as constants.
  void BecomeState(const std::vector<std::string>& resources);
  std::shared_ptr<ConstantStore> MakeConstants() const;
  // Removes the callables' references to executors.
  void ReleaseCallables();
  std::vector<std::shared_ptr<Executor>> All() const;

  Session& session_;
  const std::string name_;
  HeldSource& source_;
  const StoredDevices stored_devices_;
  const std::shared_ptr<SharedConstants> shared_constants_;
  const OwnerId owner_;
  Turns compiling_;      // taken before compile_mutex_ by runs, whose wait may end early
  Mutex compile_mutex_;  // taken before mutex_
  // The model's own, one per device that was in use when a graph was last compiled.
  std::vector<std::shared_ptr<Pool>> constant_pools_;
  std::shared_ptr<const std::vector<PlacementRequest>> requests_ ABSL_GUARDED_BY(compile_mutex_);
  VariableStore variables_;
  mutable Mutex mutex_;
  // For the current placement; null once released. Executors keep a reference to theirs.
  std::shared_ptr<ConstantStore> constants_ ABSL_GUARDED_BY(mutex_);
  int64_t graphs_compiled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Entry> executors_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::vector<std::weak_ptr<CallableState>> callables_ ABSL_GUARDED_BY(mutex_);
  // How much must be known about the feeds, by requested names, where names are not enough.
  std::map<std::string, Known, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> narrower_misses_{0};
  std::set<std::string> state_ ABSL_GUARDED_BY(mutex_);  // resources that change
};

}  // namespace oncilla
