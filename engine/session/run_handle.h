// RunHandle: an asynchronous run (Model::RunAsync).
#pragma once

#include <memory>

#include "engine/session/run_request.h"

namespace oncilla {

// A run under way or done. Copies are the same run. Thread-safe.
class RunHandle {
 public:
  bool Done() const;
  // False when it is not done by then.
  bool Wait(Deadline deadline = kNoDeadline) const;
  // Waits for the result. The first call gets it; later ones fail with FailedPrecondition.
  Result<RunResult> Take() const;
  // The run ends as Cancelled, unless it is done before it notices.
  void Cancel() const;

 private:
  friend class Model;
  struct State;
  explicit RunHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace oncilla
