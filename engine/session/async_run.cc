// Runs on the session's own threads, and the handles that their callers hold.
#include <utility>

#include "engine/base/caught.h"
#include "engine/session/model.h"

namespace oncilla {

struct RunHandle::State {
  const CancellationToken cancel;
  Mutex mutex;
  bool done ABSL_GUARDED_BY(mutex) = false;
  bool taken ABSL_GUARDED_BY(mutex) = false;
  Result<RunResult> outcome ABSL_GUARDED_BY(mutex) = Internal("not run yet");

  explicit State(CancellationToken token) : cancel(std::move(token)) {}
};

bool RunHandle::Done() const {
  MutexLock lock(&state_->mutex);
  return state_->done;
}

bool RunHandle::Wait(Deadline deadline) const {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) { return state.done; };
  if (deadline != kNoDeadline) return state.mutex.AwaitUntil(deadline, done);
  state.mutex.Await(done);
  return true;
}

Result<RunResult> RunHandle::Take() const {
  Wait();
  MutexLock lock(&state_->mutex);
  if (std::exchange(state_->taken, true)) {
    return Error(Code::kFailedPrecondition, "the run's result was taken already");
  }
  return std::move(state_->outcome);
}

void RunHandle::Cancel() const { state_->cancel.Cancel(); }

Result<RunHandle> Model::RunAsync(RunRequest request,
                                  std::function<void(const RunHandle& run)> done) {
  const auto begin = std::chrono::steady_clock::now();
  if (!request.cancel.possible()) request.cancel = CancellationToken::Create();
  auto state = std::make_shared<RunHandle::State>(request.cancel);
  // The model is entered now, not when a thread becomes free, so that closing waits for queued runs
  // too.
  ONCILLA_ASSIGN(auto use, Enter());
  auto task = [self = shared_from_this(), request = std::move(request), done = std::move(done),
               state, begin, use = std::move(use)]() mutable {
    Result<RunResult> outcome = Fenced([&] { return self->RunSince(request, begin); });
    use.reset();  // `done` may unload the model
    request = {};
    {
      MutexLock lock(&state->mutex);
      state->outcome = std::move(outcome);
      state->done = true;
    }
    if (done) done(RunHandle(state));
  };
  ONCILLA_TRY(session_->tasks_.Post(std::move(task)));
  return RunHandle(std::move(state));
}

}  // namespace oncilla
