// Model: a loaded model in a session: signatures, and runs by name. Compiled graphs are made per
// set of feeds and fetches on first use and kept, up to a bound. Thread-safe: runs may overlap.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/executor.h"
#include "engine/session/held_source.h"
#include "engine/session/out_of_memory.h"
#include "engine/session/session.h"

namespace oncilla {

using NamedTensor = std::pair<std::string, Tensor>;

// As tensorflow.RunOptions has it: what the host did and how memory went; what devices tell of
// steps and copies by their own clocks; both.
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
  int64_t instances_made = 0;
  int64_t constants_packed = 0;
  int64_t constant_bytes = 0;
  int64_t kernels_built = 0;  // programs, on OpenCL devices
};

// A run under way or done. Copies are the same run. Thread-safe.
class RunHandle {
 public:
  bool Done() const;
  // False when it is not done by then.
  bool Wait(Deadline deadline = kNoDeadline) const;
  // Waits, and gives the result to the first who asks; FailedPrecondition to others.
  Result<RunResult> Take() const;
  // The run ends as Cancelled, unless it is done before it notices.
  void Cancel() const;

 private:
  friend class Model;
  struct State;
  explicit RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// What a callable has bound to the model's graph as it is now. The model takes it away when it
// changes or goes, and it is made anew.
struct CallableState {
  struct Bound {
    std::shared_ptr<Executor> executor;
    std::vector<size_t> feed_of_input;
    std::vector<bool> keep;  // per output
  };
  Mutex mutex;
  std::shared_ptr<const Bound> bound ABSL_GUARDED_BY(mutex);
};

class Model : public std::enable_shared_from_this<Model> {
 public:
  ~Model();

  // Of an unloaded model only the signatures are left.
  const ModelSource& source() const { return *source_; }
  StoredDevices stored_devices() const { return stored_devices_; }
  const std::string& path() const { return path_; }
  Session& session() { return *session_; }

  Result<RunResult> Run(const RunRequest& request);
  // The same on a thread of the session's, of which there are max_concurrent_runs; others wait in
  // line, a bounded number. `done`, which may be empty, is called there when the run is over, and
  // may take the result; it may do anything but wait for other runs. The time limit begins now.
  // ResourceExhausted when too many wait.
  Result<RunHandle> RunAsync(RunRequest request,
                             std::function<void(const RunHandle& run)> done = nullptr);

  // From the next run on nodes are placed as asked; what was asked for last wins. Weights move with
  // their nodes: the copies that no graph reads any more go back once no run under way does.
  // InvalidArgument for what is no device name; NotFound for a device that is not there, if the
  // session is strict (otherwise its nodes are placed as if nothing had been asked, with that
  // reason).
  Status Place(std::vector<PlacementRequest> requests);
  // Takes back all that Place() asked for.
  void ClearPlacement();

  // Does what Run would, up to computing: imports, compiles, packs weights, and makes the plan with
  // its kernels for the shapes of the feeds (and the values of those that shapes depend on).
  // Without feeds, the plan too where the graph knows all sizes of its inputs.
  Status Prepare(const RunRequest& request);

  // The executor for these names (empty feeds: those of the signature that the fetches need), for
  // inspect; `observe` sees the graph after each stage when it is compiled now. `device` is
  // RunRequest's.
  Result<std::shared_ptr<Executor>> Executable(
      const ImportRequest& request,
      const std::function<void(std::string_view, const Graph&)>& observe = nullptr,
      const std::string& device = {});

  ModelCounters counters() const;

  // What the model remembers between runs: variables that some graph of it changes, and tables.
  // Each is there from the first run, or Prepare, that needs it.
  const VariableStore& variables() const { return variables_; }
  // All variables, trained weights too.
  Result<std::vector<TensorInfo>> Variables() const { return source_->Variables(); }
  // A copy of what the variable is now: what was last assigned, else what the model's files give
  // it. NotFound with near names; FailedPrecondition when nothing has given it a value yet.
  Result<Tensor> ReadVariable(const std::string& name);
  // For the runs that begin later. InvalidArgument for another type or shape than the variable's.
  // To assign to one that no graph changes makes it one that changes, which costs the graphs that
  // read it another compilation.
  Status AssignVariable(const std::string& name, Tensor value);
  // Lets go of plans' memory that no run holds; constants stay.
  void DropIdle();
  // See Session::Defragment.
  Status Repack();
  bool unloaded() const {
    MutexLock lock(&mutex_);
    return unloaded_;
  }
  // What the model holds: constants, variables and plans, for reports.
  ModelMemory memory() const;
  // Takes the model out of its session; later runs fail with FailedPrecondition.
  Released Unload();
  // The same where there may be no memory to list what came back.
  void UnloadCounting(const DeviceCounter& count);

 private:
  friend class Session;
  friend class Callable;
  Model(std::shared_ptr<Session> session, std::string path, std::unique_ptr<ModelSource> source,
        std::shared_ptr<SharedConstants> shared);

  class Use;
  // An executor, by what was asked for and by what its graph really takes: requests that differ in
  // inputs that nothing needs share one.
  struct Entry {
    std::vector<std::string> keys;  // the graph's own first
    std::shared_ptr<Executor> executor;
    // To make it anew.
    ImportRequest request;
    int preferred = 0;
  };
  static constexpr size_t kMaxExecutors = 16;
  static constexpr size_t kMaxKeys = 16;  // per executor
  std::shared_ptr<ConstantStore> MakeConstants() const;
  Result<Use> Enter();
  Result<std::shared_ptr<const Use>> EnterShared();
  // Refuses runs from now on; false when some are still under way at the deadline.
  bool Drain(Deadline deadline);
  // What ends a run that has no limits of its own: the session, and a device that hangs.
  RunControl Watched() const;
  RunControl ControlOf(std::chrono::steady_clock::time_point begin,
                       std::chrono::milliseconds timeout, const CancellationToken& cancel) const;
  // Runs, in turn where variables change. Feeds in the order of the graph's inputs.
  Result<std::vector<RunValue>> Execute(Executor& executor, std::span<const RunValue> feeds,
                                        const std::vector<bool>& keep, const RunControl& control,
                                        MemoryOutcome* memory = nullptr);
  static Result<std::vector<bool>> KeepMask(const Graph& graph,
                                            const std::vector<std::string>& keep, bool all);
  void SamplePools(std::vector<PoolSample>& samples) const;
  Status NotFed(const std::string& input, const Fact& fact) const;
  void AddCallable(const std::shared_ptr<CallableState>& callable);
  // Takes their executors away.
  void ReleaseCallables();
  // Those that are alive.
  std::vector<std::shared_ptr<CallableState>> Callables();
  // Executable(), by who has entered, for a run that may end early.
  Result<std::shared_ptr<Executor>> ExecutableInUse(
      const ImportRequest& request,
      const std::function<void(std::string_view, const Graph&)>& observe, int preferred,
      const RunControl& control);
  Result<RunResult> RunSince(const RunRequest& request,
                             std::chrono::steady_clock::time_point begin);
  Result<std::shared_ptr<Executor>> Compile(
      Module module, int preferred,
      const std::function<void(std::string_view, const Graph&)>& observe, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  // DataLoss when a file of the model was changed since it was opened.
  Status FilesUnchanged() const;
  PlacementOptions Placement(const Module& module, int preferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  void KnowDevices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  void PlaceAnew(std::shared_ptr<const std::vector<PlacementRequest>> requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  // One attempt. `may_repeat`: nothing has changed that a second attempt would change again.
  Result<RunResult> RunOn(const std::string& device, const RunRequest& request,
                          std::chrono::steady_clock::time_point begin, bool& may_repeat);
  Status CheckAlive(const CompiledGraph& compiled) const;
  // What runs of one kind went on with because a device cannot do them: the next goes there at
  // once, until the device has more room than it had then.
  struct Settled {
    std::string device;
    size_t next = 0;  // of the policy's chain
    std::vector<FallbackStep> steps;
    std::vector<std::pair<size_t, int64_t>> room;  // device and bytes
  };
  std::string SettledKey(const RunRequest& request, const FallbackPolicy& policy) const;
  std::optional<Settled> FindSettled(const std::string& key, bool& known);
  void Settle(const std::string& key, Settled settled);
  Status AfterFailure(const Status& failure, const std::string& device);
  Status PrepareVariables(const Module& module) ABSL_EXCLUSIVE_LOCKS_REQUIRED(compile_mutex_);
  // Drops the graphs that took these for constants.
  void BecomeState(const std::vector<std::string>& resources);
  // Null when there is none.
  std::shared_ptr<Executor> FindExecutor(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Session> session_;
  const std::string path_;
  const std::unique_ptr<HeldSource> source_;
  const std::shared_ptr<SharedConstants> shared_constants_;  // with other loads; may be null
  OwnerId owner_ = kNoOwner;
  StoredDevices stored_devices_ = StoredDevices::kIgnore;  // set before anybody has the model
  Mutex compile_mutex_;                                    // taken before mutex_
  // Per device in use when something was last compiled, of the model's own.
  std::vector<std::shared_ptr<Pool>> constant_pools_;
  std::shared_ptr<const std::vector<PlacementRequest>> requests_ ABSL_GUARDED_BY(compile_mutex_);
  // Of the present placement; null once unloaded. Executors hold on to theirs.
  std::shared_ptr<ConstantStore> constants_ ABSL_GUARDED_BY(mutex_);
  VariableStore variables_;
  mutable Mutex mutex_;
  bool unloaded_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Somebody makes an executor: who waits for that may give up, other than for compile_mutex_.
  bool compiling_ ABSL_GUARDED_BY(mutex_) = false;
  int users_ ABSL_GUARDED_BY(mutex_) = 0;  // runs and compilations under way
  int64_t graphs_compiled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Entry> executors_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::vector<std::weak_ptr<CallableState>> callables_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> state_ ABSL_GUARDED_BY(mutex_);  // resources that change
  std::map<std::string, Settled> settled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
