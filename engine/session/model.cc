// Runs by name: which graph, which order of feeds, and what to report.
#include "engine/session/model.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "engine/base/free_memory.h"
#include "engine/import/tf_messages.h"

namespace oncilla {
namespace {

std::string KeyOf(const ImportRequest& request) {
  std::string key = request.signature + '\n';
  for (const std::string& f : request.feeds) key += f + '\n';
  key += '\n';
  for (const std::string& f : request.fetches) key += f + '\n';
  key += '\n';
  for (const std::string& t : request.targets) key += t + '\n';
  return key;
}

// Inputs that some node reads or that are fetched, by name, sorted.
std::vector<std::string> NeededInputs(const Graph& graph) {
  const auto readers = Consumers(graph);
  std::vector<std::string> names;
  for (const NamedValue& input : graph.inputs()) {
    bool needed = !readers[Index(input.value)].empty();
    for (const NamedValue& output : graph.outputs()) needed |= output.value == input.value;
    if (needed) names.push_back(input.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

DeviceCounters CountersOf(std::span<Device* const> devices) {
  DeviceCounters sum;
  for (Device* device : devices) {
    const DeviceCounters c = device->counters();
    sum.flushes += c.flushes;
    sum.waits += c.waits;
    sum.kernels_built += c.kernels_built;
  }
  return sum;
}

std::string ShortName(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

}  // namespace

std::string RunReport::Line() const {
  std::ostringstream out;
  for (size_t d = devices.size(); d-- > 0;) {
    if (nodes_on[d] == 0 && d != devices.size() - 1) continue;
    if (d + 1 != devices.size()) out << ", ";
    out << ShortName(devices[d]) << " ran " << nodes_on[d]
        << (nodes_on[d] == 1 ? " node" : " nodes");
  }
  if (host_nodes > 0) out << ", the host " << host_nodes;
  if (planned_nodes > 0) out << ", " << planned_nodes << " computed while planning";
  if (!refusals.empty()) {
    out << " (";
    for (size_t i = 0; i < refusals.size() && i < 3; ++i) {
      out << (i ? "; " : "") << refusals[i].second << ": " << refusals[i].first;
    }
    if (refusals.size() > 3) out << "; and " << refusals.size() - 3 << " more reasons";
    out << ')';
  }
  for (size_t i = 0; i < relaxed.size() && i < 3; ++i) {
    out << "; " << relaxed[i].second << " not on their stored device " << relaxed[i].first;
  }
  if (relaxed.size() > 3) out << "; and " << relaxed.size() - 3 << " more stored devices";
  out << "; " << stats.copies << (stats.copies == 1 ? " copy" : " copies");
  if (stats.copies > 0) {
    out.setf(std::ios::fixed);
    out.precision(2);
    out << ", " << static_cast<double>(stats.copied_bytes) / 1e6 << " MB";
  }
  return std::move(out).str();
}

Model::Model(std::shared_ptr<Session> session, std::string path,
             std::unique_ptr<ModelSource> source)
    : session_(std::move(session)), path_(std::move(path)), source_(std::move(source)) {
  owner_ = session_->ledger().AddOwner(OwnerKind::kModel, path_, session_->owner_);
  std::vector<Pool*> pools;
  for (size_t d = 0; d < session_->devices().size(); ++d) {
    constant_pools_.push_back(session_->MakePool(d, "constants", owner_));
    pools.push_back(constant_pools_.back().get());
  }
  constants_ = std::make_unique<ConstantStore>(session_->devices(), std::move(pools), owner_);
}

Model::~Model() { Unload(); }

// Held by who works with the model: Unload waits until nobody does.
class Model::Use {
 public:
  explicit Use(Model* model) : model_(model) {}
  Use(Use&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  Use(const Use&) = delete;
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (model_ == nullptr) return;
    MutexLock lock(&model_->mutex_);
    --model_->users_;
  }

 private:
  Model* model_;
};

Result<Model::Use> Model::Enter() {
  MutexLock lock(&mutex_);
  if (unloaded_ || draining_) return Error(Code::kFailedPrecondition, "the model is unloaded");
  ++users_;
  return Use(this);
}

Result<std::shared_ptr<const Model::Use>> Model::EnterShared() {
  ONCILLA_ASSIGN(Use use, Enter());
  return std::make_shared<const Use>(std::move(use));
}

std::shared_ptr<Executor> Model::FindExecutor(const std::string& key) {
  for (auto it = executors_.begin(); it != executors_.end(); ++it) {
    if (std::find(it->keys.begin(), it->keys.end(), key) == it->keys.end()) continue;
    executors_.splice(executors_.begin(), executors_, it);
    return executors_.front().executor;
  }
  return nullptr;
}

Result<std::shared_ptr<Executor>> Model::Executable(
    const ImportRequest& request,
    const std::function<void(std::string_view, const Graph&)>& observe) {
  ONCILLA_ASSIGN(const Use use, Enter());
  return ExecutableInUse(request, observe);
}

Result<std::shared_ptr<Executor>> Model::ExecutableInUse(
    const ImportRequest& request,
    const std::function<void(std::string_view, const Graph&)>& observe) {
  const std::string asked = "asked\n" + KeyOf(request);
  const auto find = [&](const std::string& key) {
    MutexLock lock(&mutex_);
    return observe ? nullptr : FindExecutor(key);
  };
  if (auto found = find(asked)) return found;
  // One compilation at a time: two of the same names would pack the same constants twice.
  MutexLock compiling(&compile_mutex_);
  if (auto found = find(asked)) return found;
  auto module = source_->Import(request, session_->runtime().ops());
  if (!module.ok()) return WithStage(module.status(), Stage::kLoad);
  ImportRequest taken = request;
  taken.feeds = NeededInputs(module->main);
  if (taken.feeds.size() < module->main.inputs().size()) {
    auto fewer = source_->Import(taken, session_->runtime().ops());
    // Of some inputs an importer needs only the type: they stay, and are fed for nothing.
    if (fewer.ok()) {
      module = std::move(fewer);
    } else {
      taken.feeds.clear();
      for (const NamedValue& input : module->main.inputs()) taken.feeds.push_back(input.name);
      std::sort(taken.feeds.begin(), taken.feeds.end());
    }
  }
  const std::string own = "takes\n" + KeyOf(taken);
  {
    MutexLock lock(&mutex_);
    if (auto found = observe ? nullptr : FindExecutor(own)) {
      std::vector<std::string>& keys = executors_.front().keys;
      if (keys.size() < kMaxKeys) keys.push_back(asked);
      return found;
    }
  }
  ONCILLA_TRY(PrepareVariables(*module));
  ONCILLA_ASSIGN(auto executor, Compile(*std::move(module), observe));
  std::shared_ptr<Executor> dropped;  // its memory goes back after the lock
  MutexLock lock(&mutex_);
  ++graphs_compiled_;
  executors_.push_front({{own, asked}, executor});
  if (executors_.size() > kMaxExecutors) {
    dropped = std::move(executors_.back().executor);
    executors_.pop_back();
  }
  return executor;
}

Result<std::shared_ptr<Executor>> Model::Compile(
    Module module, const std::function<void(std::string_view, const Graph&)>& observe) {
  CompileOptions options;
  options.placement.preferred = session_->preferred();
  options.placement.strict = session_->options().strict;
  options.verify = session_->options().verify;
  options.observe = observe;
  if (stored_devices_ != StoredDevices::kIgnore) {
    auto stored = std::make_shared<StoredPins>();
    stored->by_source = source_->stored_devices();
    stored->hard = stored_devices_ == StoredDevices::kRespect;
    options.placement.stored = std::move(stored);
  }
  ONCILLA_ASSIGN(auto compiled, oncilla::Compile(std::move(module), session_->devices(),
                                                 session_->device_names(), *constants_, options));
  // The constants' sources and what folding made on the way: often as much as the model.
  ReturnFreeMemory();
  for (const auto& [why, count] : compiled->placement.Refusals()) {
    session_->runtime().log().Info(path_, ": ", count, count == 1 ? " node runs" : " nodes run",
                                   " on the CPU: ", why);
  }
  for (const auto& [why, count] : compiled->placement.Relaxed()) {
    session_->runtime().log().Info(path_, ": ", count, count == 1 ? " node is" : " nodes are",
                                   " not where the model stores it, ", why);
  }
  if (session_->options().log_device_placement) {
    for (const NodePlacement& node : compiled->placement.nodes) {
      session_->runtime().log().Warning(
          node.node, ": (", node.op,
          "): ", compiled->placement.devices[static_cast<size_t>(node.device)]);
    }
  }
  std::vector<Pool*> pools;
  for (const auto& pool : session_->pools_) pools.push_back(pool.get());
  ExecutorOptions executor_options;
  executor_options.max_instances = session_->options().max_concurrent_runs;
  executor_options.variables = &variables_;
  executor_options.abandoned_bytes = session_->abandoned_bytes_;
  executor_options.links = session_->links_;
  return std::make_shared<Executor>(std::move(compiled), session_->devices(), std::move(pools),
                                    owner_, executor_options);
}

// Called with compile_mutex_ held.
Status Model::PrepareVariables(const Module& module) {
  std::vector<std::string> resources, missing;
  for (const ModuleVariable& variable : module.variables) {
    resources.push_back(variable.resource);
    if (variable.initial.valid()) variables_.Initialise(variable.name, variable.initial);
    if (!variables_.Has(variable.name)) missing.push_back(variable.resource);
  }
  BecomeState(resources);
  if (missing.empty()) return Status();
  auto initialiser = source_->ImportInitialiser(missing, session_->runtime().ops());
  if (!initialiser.ok()) return WithStage(initialiser.status(), Stage::kLoad);
  if (initialiser->main.nodes().empty()) return Status();
  for (const ModuleVariable& variable : initialiser->variables) {
    if (variable.initial.valid()) variables_.Initialise(variable.name, variable.initial);
  }
  ONCILLA_ASSIGN(const auto executor, Compile(*std::move(initialiser), nullptr));
  return executor->Run({}, ControlOf({}, {}, {})).status();
}

void Model::BecomeState(const std::vector<std::string>& resources) {
  source_->NoteState(resources);
  std::list<Entry> dropped;  // their memory goes back after the lock
  {
    MutexLock lock(&mutex_);
    bool changed = false;
    for (const std::string& name : resources) changed |= state_.insert(name).second;
    if (!changed) return;
    dropped.swap(executors_);
  }
  ReleaseCallables();
}

void Model::ReleaseCallables() {
  for (const auto& callable : Callables()) {
    std::shared_ptr<const CallableState::Bound> dropped;
    MutexLock lock(&callable->mutex);
    dropped.swap(callable->bound);
  }
}

Status Model::AssignVariable(const std::string& name, Tensor value) {
  ONCILLA_ASSIGN(const Use use, Enter());
  MutexLock compiling(&compile_mutex_);
  if (!variables_.Has(name)) {
    if (Status s = source_->FindVariable(name); !s.ok()) return WithStage(s, Stage::kOptions);
  }
  BecomeState({name});
  variables_.Assign(name, std::move(value));
  return Status();
}

Status Model::Prepare(const std::string& signature, const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches) {
  return Executable({signature, feeds, fetches, {}}).status();
}

Result<RunResult> Model::Run(const RunRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  ONCILLA_ASSIGN(const Use use, Enter());
  return RunSince(request, begin);
}

Result<RunResult> Model::RunSince(const RunRequest& request,
                                  std::chrono::steady_clock::time_point begin) {
  ImportRequest names{request.signature, {}, request.fetches, request.targets};
  for (const NamedTensor& feed : request.feeds) names.feeds.push_back(feed.first);
  for (const auto& feed : request.device_feeds) names.feeds.push_back(feed.first);
  ONCILLA_ASSIGN(const auto executor, ExecutableInUse(names, nullptr));
  const CompiledGraph& compiled = executor->compiled();
  std::vector<RunValue> feeds;
  for (const NamedValue& input : compiled.graph.inputs()) {
    auto far = std::find_if(request.device_feeds.begin(), request.device_feeds.end(),
                            [&](const auto& f) { return f.first == input.name; });
    if (far != request.device_feeds.end()) {
      feeds.push_back(far->second);
      continue;
    }
    auto it = std::find_if(request.feeds.begin(), request.feeds.end(),
                           [&](const NamedTensor& f) { return f.first == input.name; });
    if (it == request.feeds.end()) {
      return NotFed(input.name, compiled.graph.fact(input.value));
    }
    ONCILLA_TRY(
        tf_messages::FeedFits(*source_, input.name, compiled.graph.fact(input.value), it->second));
    feeds.push_back(it->second);
  }
  RunResult result;
  RunControl control = ControlOf(begin, request.timeout, request.cancel);
  const DeviceCounters before = CountersOf(session_->devices());
  control.profile = request.profile;
  control.stats = &result.report.stats;
  ONCILLA_ASSIGN(const auto keep, KeepMask(compiled.graph, request.keep, request.keep_all));
  ONCILLA_ASSIGN(auto outputs, Execute(*executor, feeds, keep, control));
  for (size_t i = 0; i < outputs.size(); ++i) {
    result.outputs.emplace_back(compiled.graph.outputs()[i].name, outputs[i].host());
    if (request.keep_all || !request.keep.empty()) result.kept.push_back(outputs[i].device());
  }
  RunReport& report = result.report;
  report.devices.assign(session_->device_names().begin(), session_->device_names().end());
  report.nodes_on.resize(report.devices.size());
  const auto count = [&](const Graph& graph, std::span<const NodeFate> fates) {
    for (size_t n = 0; n < fates.size(); ++n) {
      switch (fates[n]) {
        case NodeFate::kStep:
        case NodeFate::kView:
          ++report.nodes_on[graph.node(NodeId{static_cast<uint32_t>(n)}).device];
          break;
        case NodeFate::kHost:
          ++report.host_nodes;
          break;
        default:
          ++report.planned_nodes;
      }
    }
  };
  count(compiled.graph, report.stats.fates);
  for (const auto& [function, fates] : report.stats.functions) count(function->graph, fates);
  report.refusals = compiled.placement.Refusals();
  report.relaxed = compiled.placement.Relaxed();
  const DeviceCounters after = CountersOf(session_->devices());
  report.flushes = after.flushes - before.flushes;
  report.waits = after.waits - before.waits;
  report.wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
          .count();
  return result;
}

RunControl Model::ControlOf(std::chrono::steady_clock::time_point begin,
                            std::chrono::milliseconds timeout,
                            const CancellationToken& cancel) const {
  RunControl control;
  if (timeout.count() > 0) control.deadline = begin + timeout;
  control.cancel = cancel;
  control.stop = session_->stop();
  control.watchdog = std::chrono::milliseconds(session_->options().watchdog_ms);
  return control;
}

Result<std::vector<RunValue>> Model::Execute(Executor& executor, std::span<const RunValue> feeds,
                                             const std::vector<bool>& keep,
                                             const RunControl& control) {
  std::optional<VariableStore::Turn> turn;
  if (executor.compiled().writes_variables) {
    ONCILLA_ASSIGN(turn, variables_.TakeTurn(control));
  }
  return executor.RunValues(feeds, keep, control);
}

Result<std::vector<bool>> Model::KeepMask(const Graph& graph, const std::vector<std::string>& keep,
                                          bool all) {
  std::vector<bool> mask(graph.outputs().size(), all);
  for (const std::string& name : keep) {
    const auto it = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                 [&](const NamedValue& output) { return output.name == name; });
    if (it == graph.outputs().end()) {
      return WithStage(InvalidArgument("'", name, "' is to be kept, but is no output of the run"),
                       Stage::kOptions);
    }
    mask[static_cast<size_t>(it - graph.outputs().begin())] = true;
  }
  return mask;
}

Status Model::NotFed(const std::string& input, const Fact& fact) const {
  return tf_messages::NotFed(*source_, input, fact);
}

void Model::AddCallable(const std::shared_ptr<CallableState>& callable) {
  MutexLock lock(&mutex_);
  std::erase_if(callables_, [](const auto& weak) { return weak.expired(); });
  callables_.push_back(callable);
}

std::vector<std::shared_ptr<CallableState>> Model::Callables() {
  std::vector<std::shared_ptr<CallableState>> alive;
  MutexLock lock(&mutex_);
  for (const auto& weak : callables_) {
    if (auto callable = weak.lock()) alive.push_back(std::move(callable));
  }
  return alive;
}

ModelCounters Model::counters() const {
  ModelCounters out;
  MutexLock lock(&mutex_);
  out.graphs_compiled = graphs_compiled_;
  for (const Entry& entry : executors_) {
    const ExecutorCounters c = entry.executor->counters();
    out.plans_made += c.plans_made;
    out.instances_made += c.instances_made;
  }
  if (constants_ != nullptr) {
    out.constants_packed = constants_->packings();
    out.constant_bytes = constants_->bytes();
  }
  out.kernels_built = CountersOf(session_->devices()).kernels_built;
  return out;
}

void Model::DropIdle() {
  std::vector<std::shared_ptr<Executor>> executors;
  {
    MutexLock lock(&mutex_);
    for (const Entry& entry : executors_) executors.push_back(entry.executor);
  }
  for (const auto& callable : Callables()) {
    MutexLock lock(&callable->mutex);
    if (callable->bound != nullptr) executors.push_back(callable->bound->executor);
  }
  for (const auto& executor : executors) executor->DropIdle();
}

bool Model::Drain(Deadline deadline) {
  MutexLock lock(&mutex_);
  draining_ = true;
  return mutex_.AwaitUntil(deadline,
                           [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
}

Released Model::Unload() {
  std::unique_ptr<ConstantStore> constants;
  std::list<Entry> executors;
  {
    MutexLock lock(&mutex_);
    if (unloaded_) return {};
    unloaded_ = true;
    mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
    executors.swap(executors_);
    constants.swap(constants_);
  }
  Released released;

  executors.clear();
  ReleaseCallables();
  constants.reset();
  variables_.Clear();
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    const int64_t bytes = constant_pools_[d]->Close() + session_->pools_[d]->Trim();
    released.bytes += bytes;
    released.by_device.emplace_back(session_->device_names()[d], bytes);
  }
  session_->ledger().EndOwner(owner_);
  ReturnFreeMemory();
  return released;
}

}  // namespace oncilla
