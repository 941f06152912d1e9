// RunHandle: an asynchronous run (Model::RunAsync).
#pragma once

#include <memory>

#include "engine/session/run_request.h"

namespace oncilla {

// A run in progress or done. Copies refer to the same run. Thread-safe.
class RunHandle {
 public:
  bool Done() const;
  // Returns false if the run is not done by the deadline.
  bool Wait(Deadline deadline = kNoDeadline) const;
  // Waits for the result. The first call gets it; later ones fail with FailedPrecondition.
  Result<RunResult> Take() const;
  // Requests that the run end as Cancelled; it has no effect if the run is done first.
  void Cancel() const;

 private:
  friend class Model;
  struct State;
  explicit RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace oncilla
