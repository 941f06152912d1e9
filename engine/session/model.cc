// A model's life: entering, runs and their attempts, runs on the session's threads and the handles
// that their callers hold, placement, unloading.
#include "engine/session/model.h"

#include <algorithm>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/first_by_name.h"
#include "engine/placement/device_name.h"
#include "engine/session/run.h"

namespace oncilla {

namespace {

// The request's feeds, on the host and on devices.
std::vector<NamedRunValue> FeedsOf(const RunRequest& request) {
  std::vector<NamedRunValue> feeds(request.feeds.begin(), request.feeds.end());
  feeds.insert(feeds.end(), request.device_feeds.begin(), request.device_feeds.end());
  return feeds;
}

}  // namespace

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

Model::Model(std::shared_ptr<Session> session, std::string path,
             std::unique_ptr<ModelSource> source, StoredDevices stored_devices,
             std::shared_ptr<SharedConstants> shared)
    : session_(std::move(session)),
      path_(std::move(path)),
      source_(std::move(source)),
      executables_(*session_, path_, source_, stored_devices, std::move(shared)),
      variables_(*this, source_) {}

Model::~Model() {
  UnloadCounting([](size_t, int64_t) {});
}

Result<UseGate::Use> Model::EnterNow() {
  ONCILLA_TRY(session_->runtime().CheckProcess());
  if (auto use = gate_.Enter()) return *std::move(use);
  return Error(Code::kFailedPrecondition,
               session_->closed() ? "the session is closed" : "the model is unloaded");
}

Result<std::shared_ptr<const UseGate::Use>> Model::Enter() {
  ONCILLA_ASSIGN(UseGate::Use use, EnterNow());
  return std::make_shared<const UseGate::Use>(std::move(use));
}

Result<RunResult> Model::Run(const RunRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  ONCILLA_ASSIGN(const auto use, EnterNow());
  return RunSince(request, begin);
}

Result<RunResult> Model::RunSince(const RunRequest& request,
                                  std::chrono::steady_clock::time_point begin) {
  return fallbacks_.Run(*session_, path_, request,
                        [&](const std::string& device, bool& may_repeat) {
                          return RunOn(device, request, begin, may_repeat);
                        });
}

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

Result<RunResult> Model::RunOn(const std::string& device, const RunRequest& request,
                               std::chrono::steady_clock::time_point begin, bool& may_repeat) {
  ImportRequest names{request.signature, {}, request.fetches, request.targets};
  for (const NamedTensor& feed : request.feeds) names.feeds.push_back(feed.first);
  for (const auto& feed : request.device_feeds) names.feeds.push_back(feed.first);
  DeviceSet& devices = session_->device_set();
  ONCILLA_ASSIGN(const int preferred, devices.Use(device));
  ONCILLA_TRY(devices.CheckAlive(static_cast<size_t>(preferred)));
  const RunControl control = ControlOf(*session_, begin, request.timeout, request.cancel);
  const Executables::FedFacts fed = [&request] { return FactsOfFeeds(FeedsOf(request)); };
  auto found = executables_.Find(names, preferred, control, nullptr, fed);
  if (found.status().code() == Code::kResourceExhausted && session_->memory().Trim().bytes > 0) {
    // Idle plans of other models may hold the memory that the weights need.
    found = executables_.Find(names, preferred, control, nullptr, fed);
  }
  ONCILLA_TRY(found.status());
  if ((*found)->compiled().writes_variables) may_repeat = false;
  auto result =
      RunOnce(*session_, source_, variables_.store(), **found, preferred, request, control, begin);
  if (!NeedsNarrower(result.status())) return result;
  const std::vector<NamedRunValue> feeds = FeedsOf(request);
  const auto narrower =
      executables_.FindNarrower(names, preferred, control, **found, feeds, FactsOfFeeds(feeds));
  if (narrower == nullptr) return result;
  return RunOnce(*session_, source_, variables_.store(), *narrower, preferred, request, control,
                 begin);
}

Result<std::shared_ptr<Executor>> Model::Executable(const ImportRequest& request,
                                                    const GraphObserver& observe,
                                                    const std::string& device) {
  ONCILLA_ASSIGN(const auto use, EnterNow());
  ONCILLA_ASSIGN(const int preferred, session_->device_set().Use(device));
  ImportRequest names = request;
  names.fed.clear();
  const Executables::FedFacts fed = [&request] { return request.fed; };
  return executables_.Find(names, preferred, Watched(*session_), observe,
                           request.fed.empty() ? nullptr : fed);
}

std::shared_ptr<Executor> Model::Narrower(const ImportRequest& request, Executor& executor,
                                          std::span<const NamedRunValue> feeds,
                                          const GraphObserver& observe, const std::string& device) {
  const auto use = EnterNow();
  if (!use.ok()) return nullptr;
  const auto preferred = session_->device_set().Use(device);
  if (!preferred.ok()) return nullptr;
  ImportRequest names = request;
  names.fed.clear();
  return executables_.FindNarrower(names, *preferred, Watched(*session_), executor, feeds,
                                   request.fed, observe);
}

Status Model::Place(std::vector<PlacementRequest> requests) {
  ONCILLA_ASSIGN(const auto use, EnterNow());
  for (const PlacementRequest& request : requests) {
    if (request.rule != nullptr || request.device.empty()) continue;
    if (const auto name = DeviceName::Parse(request.device); !name.ok()) {
      return WithStage(In(name.status(), StrCat("device of ", Describe(request))), Stage::kOptions);
    }
    const Status there = session_->device_set().Use(request.device).status();
    if (there.ok()) continue;
    if (session_->options().strict) return there;
    session_->WarnOnce(StrCat(path_, ": placement: ", Describe(request), ": ", there.message(),
                              "; they are placed as if nothing had been asked"));
  }
  fallbacks_.Forget();
  executables_.Place(std::move(requests));
  return Status();
}

void Model::ClearPlacement() {
  fallbacks_.Forget();
  executables_.ClearPlacement();
}

Status Model::Prepare(const RunRequest& request, const PlanProgress& progress) {
  ImportRequest wanted{request.signature, {}, request.fetches, request.targets};
  for (const auto& [name, tensor] : request.feeds) wanted.feeds.push_back(name);
  wanted.fed = FactsOfFeeds(request.feeds);
  ONCILLA_ASSIGN(const auto executor, Executable(wanted, nullptr, request.device));
  const Graph& graph = executor->compiled().graph;
  std::vector<Tensor> feeds;
  const FirstByName fed(request.feeds);
  for (const NamedValue& input : graph.inputs()) {
    if (const auto* given = fed.Find(input.name); given != nullptr) {
      feeds.push_back(given->second);
      continue;
    }
    const Fact& fact = graph.fact(input.value);
    if (!request.feeds.empty()) return source_.NotFed(input.name, fact);
    if (fact.kind != ValueKind::kTensor || !fact.shape.known() || fact.dtype == DType::kString) {
      return {};
    }
    ONCILLA_ASSIGN(Tensor zeros, Tensor::Allocate(TensorDesc{fact.dtype, fact.shape.ToShape()}));
    std::ranges::fill(zeros.mutable_bytes(), std::byte{0});
    feeds.push_back(std::move(zeros));
  }
  const Status planned = executor->PlanFor(feeds, progress).status();
  if (!NeedsNarrower(planned) || request.feeds.empty()) return planned;
  const std::vector<NamedRunValue> named(request.feeds.begin(), request.feeds.end());
  const auto narrower = Narrower(wanted, *executor, named, nullptr, request.device);
  return narrower == nullptr ? planned : Status();  // Narrower has made its plan
}

Released Model::Unload() {
  Released released;
  const std::span<const std::string> names = session_->device_set().names();
  for (const std::string& name : names) released.by_device.emplace_back(name, 0);
  UnloadCounting([&released](size_t device, int64_t bytes) {
    released.bytes += bytes;
    if (device < released.by_device.size()) released.by_device[device].second += bytes;
  });
  return released;
}

void Model::UnloadCounting(const DeviceCounter& count) {
  if (gate_.Close()) executables_.Release(count);
}

}  // namespace oncilla
