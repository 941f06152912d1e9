// Executables: what a model has compiled, by the names that runs asked for and the device that they
// prefer, with the weights that those graphs read. Thread-safe.
//
// One graph is compiled at a time. Where nodes are placed, which variables change, and where
// weights lie is settled here; a change drops the graphs, which the next runs make anew.
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

// What a model holds, piece by piece.
struct ModelMemory {
  std::vector<ConstantStore::Kept> constants;
  std::vector<std::pair<std::string, Tensor>> variables;
  std::vector<Executor::KeptPlan> plans;
};

// How often the three stages were entered, for tests and --json.
struct ModelCounters {
  int64_t graphs_compiled = 0;
  int64_t plans_made = 0;
  int64_t plans_refused = 0;
  int64_t instances_made = 0;
  int64_t constants_packed = 0;
  int64_t constant_bytes = 0;
  int64_t kernels_built = 0;  // programs, on OpenCL devices
};

// What a callable has bound to the model's graph as it is now. It is taken away when that graph is
// dropped, and made anew by the next call.
struct CallableState {
  struct Bound {
    std::shared_ptr<Executor> executor;
    std::vector<size_t> feed_of_input;
    std::vector<bool> keep;  // per output
  };
  Mutex mutex;
  std::shared_ptr<const Bound> bound ABSL_GUARDED_BY(mutex);
};

// Whether a graph that cannot be made for any feeds may be made for what is known of some.
bool NeedsFeeds(const Status& imported);
// Whether a run may have failed for lack of a graph for its feeds (Executables::FindNarrower).
bool NeedsNarrower(const Status& run);

class Executables {
 public:
  // `shared`: constants that other loads of the same files have too; may be null.
  Executables(Session& session, std::string name, HeldSource& source, StoredDevices stored_devices,
              std::shared_ptr<SharedConstants> shared);

  // The facts of a run's feeds, in the order of their names.
  using FedFacts = std::function<Facts()>;

  // The executor for these names, compiled now unless it is there. `observe` sees the graph after
  // each stage, which is compiled anew for it. Where the graph cannot be made for any feeds, it is
  // made for the ranks of `fed`, else for its shapes, else for its numbers too.
  // FailedPrecondition, DeadlineExceeded or Cancelled when the run ends first; DataLoss when a file
  // of the model was changed since it was opened.
  Result<std::shared_ptr<Executor>> Find(const ImportRequest& request, int preferred,
                                         const RunControl& control,
                                         const GraphObserver& observe = nullptr,
                                         const FedFacts& fed = nullptr);

  // Where the graph of `executor`, for any feeds of these names, cannot be planned for `feeds`,
  // since it lacks what only some sizes or numbers need (groups of a convolution, axes of size one
  // that stretch): one that is made for their shapes, else for their numbers too. `fed` are their
  // facts, in the order of request.feeds. Null where that is not the reason or does not help, and
  // once it did not kMostMisses times in a row: wrong feeds should not cost a compilation each.
  std::shared_ptr<Executor> FindNarrower(const ImportRequest& request, int preferred,
                                         const RunControl& control, Executor& executor,
                                         std::span<const NamedRunValue> feeds, const Facts& fed,
                                         const GraphObserver& observe = nullptr);

  // From the next run on nodes are placed as asked, besides what was asked for before.
  void Place(std::vector<PlacementRequest> requests);
  void ClearPlacement();
  // Moves weights together where they lie in more memory than they need (Session::Defragment).
  Status Repack(const RunControl& control);
  // Lets go of plans' memory that no run holds; constants stay.
  void DropIdle();

  // A callable whose executor goes with the others.
  void AddCallable(const std::shared_ptr<CallableState>& callable);

  // What the model remembers between runs: variables that some graph of it changes, and tables.
  // Each is there from the first run, or Prepare, that needs it.
  VariableStore& variables() { return variables_; }
  // Assigns for the runs that begin later. To assign to a variable that no graph changes makes it
  // one that changes, which costs the graphs that read it another compilation.
  Status Assign(const std::string& variable, Tensor value);
  // DataLoss when a file of the model was changed since it was opened.
  Status FilesUnchanged() const;

  StoredDevices stored_devices() const { return stored_devices_; }
  ModelCounters counters() const;
  ModelMemory memory() const;

  // Gives everything back, to nobody's use: for the end of the model.
  void Release(const DeviceCounter& count);

 private:
  // An executor, by what was asked for and by what its graph really takes: requests that differ in
  // inputs that nothing needs share one.
  struct Entry {
    std::vector<std::string> keys;  // the graph's own first
    std::shared_ptr<Executor> executor;
    // To make it anew.
    ImportRequest request;
    int preferred = 0;
  };
  // What a graph may rely on of the tensors that are fed, the least first.
  enum class Known : uint8_t { kNames, kRanks, kShapes, kWholeNumbers, kNumbers };
  static Facts FactsOf(const Facts& fed, Known known);
  static std::string KeyOf(const ImportRequest& request);

  static constexpr size_t kMaxExecutors = 16;
  static constexpr int kMostMisses = 8;   // of FindNarrower in a row
  static constexpr size_t kMaxKeys = 16;  // per executor

  // The same for what `request.fed` says.
  Result<std::shared_ptr<Executor>> FindFor(const ImportRequest& request, int preferred,
                                            const RunControl& control,
                                            const GraphObserver& observe = nullptr);
  // Null when there is none.
  std::shared_ptr<Executor> FindExecutor(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<Module> Import(const ImportRequest& request, ImportRequest& taken);
  // OK where the request can be imported; nothing is compiled.
  Status TryImport(const ImportRequest& request, const RunControl& control);
  // What importing and compiling may take: host memory, and the time of the run or of the caller.
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
  // Drops the graphs that took these for constants.
  void BecomeState(const std::vector<std::string>& resources);
  std::shared_ptr<ConstantStore> MakeConstants() const;
  // Takes the callables' executors away.
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
  // Per device in use when something was last compiled, of the model's own.
  std::vector<std::shared_ptr<Pool>> constant_pools_;
  std::shared_ptr<const std::vector<PlacementRequest>> requests_ ABSL_GUARDED_BY(compile_mutex_);
  VariableStore variables_;
  mutable Mutex mutex_;
  // For the present placement; null once released. Executors keep a reference to theirs.
  std::shared_ptr<ConstantStore> constants_ ABSL_GUARDED_BY(mutex_);
  int64_t graphs_compiled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Entry> executors_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::vector<std::weak_ptr<CallableState>> callables_ ABSL_GUARDED_BY(mutex_);
  // How much must be known of what is fed, by names asked for, where names are not enough.
  std::map<std::string, Known, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> narrower_misses_{0};
  std::set<std::string> state_ ABSL_GUARDED_BY(mutex_);  // resources that change
};

}  // namespace oncilla
