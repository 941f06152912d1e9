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

  // After unloading, only the signatures are left.
  const ModelSource& source() const { return source_; }
  const std::string& path() const { return path_; }
  Session& session() const { return *session_; }
  // What it has compiled, and holds of memory.
  Executables& executables() { return executables_; }
  const Executables& executables() const { return executables_; }
  // What it remembers between runs, and its trained weights.
  ModelVariables& variables() { return variables_; }

  Result<RunResult> Run(const RunRequest& request);
  // The same on a thread of the session's, of which there are max_concurrent_runs; others wait in
  // line, a bounded number. `done`, which may be empty, is called there when the run is over, and
  // may take the result; it may do anything but wait for other runs. The time limit begins now.
  // ResourceExhausted when too many wait.
  Result<RunHandle> RunAsync(RunRequest request,
                             std::function<void(const RunHandle& run)> done = nullptr);

  // From the next run on nodes are placed as asked; what was asked for last wins. Weights move with
  // their nodes: the copies that no graph reads any more go back once no run under way does.
  // InvalidArgument for an invalid device name; NotFound for a device that is not there, if the
  // session is strict (otherwise its nodes are placed as if nothing had been asked, with that
  // reason).
  Status Place(std::vector<PlacementRequest> requests);
  // Takes back all that Place() asked for.
  void ClearPlacement();
  // Does what Run would, up to computing: imports, compiles, packs weights, and makes the plan with
  // its kernels for the shapes of the feeds (and the values of those that shapes depend on).
  // Without feeds, the plan too where the graph knows all sizes of its inputs. `progress` is told of
  // the plan.
  Status Prepare(const RunRequest& request, const PlanProgress& progress = {});

  // The executor for these names (empty feeds: those of the signature that the fetches need), for
  // inspect; `observe` sees the graph after each stage when it is compiled now. `device` is
  // RunRequest's.
  Result<std::shared_ptr<Executor>> Executable(const ImportRequest& request,
                                               const GraphObserver& observe = nullptr,
                                               const std::string& device = {});
  // What a run of these feeds takes where it cannot take `executor`, which Executable gave for the
  // request, with their facts in request.fed (Executables::FindNarrower): its plan for them is
  // made. Else null.
  std::shared_ptr<Executor> Narrower(const ImportRequest& request, Executor& executor,
                                     std::span<const NamedRunValue> feeds,
                                     const GraphObserver& observe = nullptr,
                                     const std::string& device = {});

  // Keep the result while using the model: Unload waits for it. FailedPrecondition if unloaded.
  Result<std::shared_ptr<const UseGate::Use>> Enter();

  bool unloaded() const { return gate_.closed(); }
  // Takes the model out of its session; later runs fail with FailedPrecondition.
  Released Unload();

 private:
  friend class Session;  // closes its models
  // Refuses runs from now on; false when some are still under way at the deadline.
  bool Drain(Deadline deadline) { return gate_.Drain(deadline); }
  // Unload where there may be no memory to list what came back.
  void UnloadCounting(const DeviceCounter& count);

  Result<UseGate::Use> EnterNow();
  Result<RunResult> RunSince(const RunRequest& request,
                             std::chrono::steady_clock::time_point begin);
  // One attempt. `may_repeat`: nothing has changed that a second attempt would change again.
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
