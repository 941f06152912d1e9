// Model: a loaded model in a session: signatures, and runs by name. Compiled graphs are made per
// set of feeds and fetches on first use and kept, up to a bound. Thread-safe: runs may overlap.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/import/held_source.h"
#include "engine/session/executables.h"
#include "engine/session/fallback.h"
#include "engine/session/model_variables.h"
#include "engine/session/run_handle.h"
#include "engine/session/run_request.h"
#include "engine/session/session.h"
#include "engine/session/use_gate.h"

namespace oncilla {

class Model : public std::enable_shared_from_this<Model> {
 public:
  // `shared`: constants that other loads of the same files have too; may be null.
  Model(std::shared_ptr<Session> session, std::string path, std::unique_ptr<ModelSource> source,
        StoredDevices stored_devices, std::shared_ptr<SharedConstants> shared);
  ~Model();

  // After unloading, only the signatures remain.
  const ModelSource& source() const { return source_; }
  const std::string& path() const { return path_; }
  Session& session() const { return *session_; }
  // Its compiled graphs, and the memory that it holds.
  Executables& executables() { return executables_; }
  const Executables& executables() const { return executables_; }
  // Its state between runs, and its trained weights.
  ModelVariables& variables() { return variables_; }

  Result<RunResult> Run(const RunRequest& request);
  // The same on one of the session's max_concurrent_runs threads; further runs wait in a bounded
  // queue. `done`, which may be empty, is called on that thread when the run is over, and may take
  // the result; it must not wait for other runs. The time limit begins now. ResourceExhausted when
  // the queue is full.
  Result<RunHandle> RunAsync(RunRequest request,
                             std::function<void(const RunHandle& run)> done = nullptr);

  // Places nodes as requested from the next run on; a later request overrides an earlier one.
  // Weights move with their nodes: copies that no graph reads any more are freed when no run uses
  // them. InvalidArgument for an invalid device name; NotFound for a device that does not exist, if
  // the session is strict (otherwise its nodes are placed as if nothing had been requested, with
  // that reason).
  Status Place(std::vector<PlacementRequest> requests);
  // Withdraws all requests of Place().
  void ClearPlacement();
  // Does everything that Run would do before computing: imports, compiles, packs weights, and makes
  // the plan with its kernels for the shapes of the feeds (and the values of those that shapes
  // depend on). Without feeds, the plan is made only if the graph knows all sizes of its inputs.
  // `progress` is called while the plan is made.
  Status Prepare(const RunRequest& request, const PlanProgress& progress = {});

  // The executor for these names (empty feeds: those of the signature that the fetches need), for
  // inspect; `observe` sees the graph after each stage when it is compiled now. `device` is
  // RunRequest's.
  Result<std::shared_ptr<Executor>> Executable(const ImportRequest& request,
                                               const GraphObserver& observe = nullptr,
                                               const std::string& device = {});
  // The executor that a run of these feeds uses if it cannot use `executor`, which Executable()
  // returned for the request; request.fed holds their facts (Executables::FindNarrower). Its plan
  // for them is made. Null if there is none.
  std::shared_ptr<Executor> Narrower(const ImportRequest& request, Executor& executor,
                                     std::span<const NamedRunValue> feeds,
                                     const GraphObserver& observe = nullptr,
                                     const std::string& device = {});

  // Keep the result while using the model: Unload waits for it. FailedPrecondition if unloaded.
  Result<std::shared_ptr<const UseGate::Use>> Enter();

  bool unloaded() const { return gate_.closed(); }
  // Removes the model from its session; later runs fail with FailedPrecondition.
  Released Unload();

 private:
  friend class Session;  // closes its models
  // Refuses runs from now on; false when some are still in progress at the deadline.
  bool Drain(Deadline deadline) { return gate_.Drain(deadline); }
  // Unload() for when there may be no memory for a list of what was freed.
  void UnloadCounting(const DeviceCounter& count);

  Result<UseGate::Use> EnterNow();
  Result<RunResult> RunSince(const RunRequest& request,
                             std::chrono::steady_clock::time_point begin);
  // One attempt. `may_repeat` is set to false once state has changed that a second attempt would
  // change again.
  Result<RunResult> RunOn(const std::string& device, const RunRequest& request,
                          std::chrono::steady_clock::time_point begin, bool& may_repeat);

  const std::shared_ptr<Session> session_;
  const std::string path_;
  HeldSource source_;
  UseGate gate_;
  Executables executables_;
  ModelVariables variables_;
  Fallbacks fallbacks_;
};

}  // namespace oncilla
