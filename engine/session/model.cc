// Runs by name: which graph, which order of feeds, and what to report.
#include "engine/session/model.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "engine/base/free_memory.h"
#include "engine/import/tf_messages.h"
#include "engine/placement/device_name.h"
#include "engine/session/fallback.h"

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
  const auto ran = [&](size_t d) {
    out << ShortName(devices[d]) << " ran " << nodes_on[d]
        << (nodes_on[d] == 1 ? " node" : " nodes");
  };
  const auto first = static_cast<size_t>(preferred);
  if (first < devices.size()) ran(first);
  for (size_t d = devices.size(); d-- > 0;) {
    if (d == first || nodes_on[d] == 0) continue;
    out << ", ";
    ran(d);
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
    out << "; " << relaxed[i].second << " not on " << relaxed[i].first;
  }
  if (relaxed.size() > 3) out << "; and " << relaxed.size() - 3 << " more such reasons";
  out << "; " << stats.copies << (stats.copies == 1 ? " copy" : " copies");
  if (stats.copies > 0) {
    out.setf(std::ios::fixed);
    out.precision(2);
    out << ", " << static_cast<double>(stats.copied_bytes) / 1e6 << " MB";
  }
  for (const std::string& step : memory.steps) out << "; " << step << " for want of memory";
  for (const FallbackStep& step : fallbacks) {
    out << "; not on " << ShortName(step.device) << ": " << Message(step.why);
  }
  return std::move(out).str();
}

Model::Model(std::shared_ptr<Session> session, std::string path,
             std::unique_ptr<ModelSource> source)
    : session_(std::move(session)), path_(std::move(path)), source_(std::move(source)) {
  owner_ = session_->ledger().AddOwner(OwnerKind::kModel, path_, session_->owner_);
  // Values that change live in host memory.
  variables_.CountOn(session_->device_set().pool(0).Line({owner_, MemoryCategory::kVariables}));
  MutexLock lock(&mutex_);
  constants_ =
      std::make_shared<ConstantStore>(std::span<Device* const>(), std::vector<Pool*>(), owner_);
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
  if (unloaded_) return Error(Code::kFailedPrecondition, "the model is unloaded");
  ++users_;
  return Use(this);
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
    const std::function<void(std::string_view, const Graph&)>& observe, const std::string& device) {
  ONCILLA_ASSIGN(const int preferred, session_->device_set().Use(device));
  const std::string asked = StrCat("asked\n", preferred, '\n', KeyOf(request));
  const auto find = [&](const std::string& key) {
    MutexLock lock(&mutex_);
    return observe ? nullptr : FindExecutor(key);
  };
  ONCILLA_ASSIGN(const Use use, Enter());
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
  const std::string own = StrCat("takes\n", preferred, '\n', KeyOf(taken));
  {
    MutexLock lock(&mutex_);
    if (auto found = observe ? nullptr : FindExecutor(own)) {
      std::vector<std::string>& keys = executors_.front().keys;
      if (keys.size() < kMaxKeys) keys.push_back(asked);
      return found;
    }
  }
  ONCILLA_TRY(PrepareVariables(*module));
  ONCILLA_ASSIGN(auto executor, Compile(*std::move(module), preferred, observe));
  std::shared_ptr<Executor> dropped;  // its memory goes back after the lock
  MutexLock lock(&mutex_);
  ++graphs_compiled_;
  executors_.push_front({{own, asked}, executor, request, device});
  if (executors_.size() > kMaxExecutors) {
    dropped = std::move(executors_.back().executor);
    executors_.pop_back();
  }
  return executor;
}

void Model::KnowDevices() {
  MutexLock lock(&mutex_);
  for (size_t d = constant_pools_.size(); d < session_->devices().size(); ++d) {
    constant_pools_.push_back(session_->device_set().MakePool(d, "constants", owner_));
    constants_->AddDevice(session_->devices()[d], constant_pools_.back().get());
  }
}

// Opens what nodes are wanted on, so that they can be placed there.
PlacementOptions Model::Placement(const Module& module, int preferred) {
  PlacementOptions options;
  options.preferred = preferred;
  options.strict = session_->options().strict;
  options.stored_hard = stored_devices_ == StoredDevices::kRespect;
  options.wishes.follow_stored = stored_devices_ != StoredDevices::kIgnore;
  options.wishes.requests = requests_;
  if (!options.wishes.follow_stored && requests_ == nullptr) return options;
  options.wishes.sources = std::make_shared<SourceNodes>(source_->source_nodes());
  std::set<std::string> wanted;
  const auto look = [&](const Graph& graph) {
    const auto wishes = GatherWishes(graph, options.wishes);
    for (size_t n = 0; wishes.ok() && n < wishes->size(); ++n) wanted.insert((*wishes)[n].device);
  };
  look(module.main);
  for (const auto& [name, function] : module.functions) look(function);
  for (const std::string& device : wanted) {
    if (device.empty()) continue;
    // One that is not there, or not to be opened, is told by placement.
    if (const auto used = session_->device_set().Use(device); !used.ok()) {
      session_->runtime().log().Info(path_, ": ", Message(used.status()));
    }
  }
  return options;
}

Result<std::shared_ptr<Executor>> Model::Compile(
    Module module, int preferred,
    const std::function<void(std::string_view, const Graph&)>& observe) {
  CompileOptions options;
  options.placement = Placement(module, preferred);
  options.verify = session_->options().verify;
  options.observe = observe;
  KnowDevices();
  const auto devices = session_->devices().first(constant_pools_.size());
  const auto names = session_->device_names().first(devices.size());
  std::shared_ptr<ConstantStore> constants;
  {
    MutexLock lock(&mutex_);
    constants = constants_;
  }
  ONCILLA_ASSIGN(auto compiled,
                 oncilla::Compile(std::move(module), devices, names, *constants, options));
  // The constants' sources and what folding made on the way: often as much as the model.
  ReturnFreeMemory();
  for (const auto& [why, count] : compiled->placement.Refusals()) {
    session_->runtime().log().Info(path_, ": ", count, count == 1 ? " node runs" : " nodes run",
                                   " on the CPU: ", why);
  }
  for (const auto& [why, count] : compiled->placement.Relaxed()) {
    session_->runtime().log().Info(path_, ": ", count, count == 1 ? " node is" : " nodes are",
                                   " not on ", why);
  }
  if (session_->options().log_device_placement) {
    for (const NodePlacement& node : compiled->placement.nodes) {
      session_->runtime().log().Warning(
          node.node, ": (", node.op,
          "): ", compiled->placement.devices[static_cast<size_t>(node.device)]);
    }
  }
  std::vector<Pool*> pools;
  for (size_t d = 0; d < devices.size(); ++d) pools.push_back(&session_->device_set().pool(d));
  ExecutorOptions executor_options;
  executor_options.max_instances = session_->options().max_concurrent_runs;
  executor_options.variables = &variables_;
  // Kernels read the constants where they are: the store goes after the executor.
  auto* executor =
      new Executor(std::move(compiled), devices, std::move(pools), owner_, executor_options);
  return std::shared_ptr<Executor>(executor,
                                   [constants = std::move(constants)](Executor* e) mutable {
                                     delete e;
                                     constants.reset();
                                   });
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
  // Values that change live in host memory.
  ONCILLA_ASSIGN(const auto executor, Compile(*std::move(initialiser), 0, nullptr));
  return executor->Run({}, {}).status();
}

void Model::BecomeState(const std::vector<std::string>& resources) {
  source_->NoteState(resources);
  std::list<Entry> dropped;  // their memory goes back after the lock
  MutexLock lock(&mutex_);
  bool changed = false;
  for (const std::string& name : resources) changed |= state_.insert(name).second;
  if (changed) dropped.swap(executors_);
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

Status Model::Place(std::vector<PlacementRequest> requests) {
  ONCILLA_ASSIGN(const Use use, Enter());
  for (const PlacementRequest& request : requests) {
    if (request.rule != nullptr || request.device.empty()) continue;
    if (const auto name = DeviceName::Parse(request.device); !name.ok()) {
      return WithStage(In(name.status(), StrCat("device of ", Describe(request))), Stage::kOptions);
    }
    const Status there = session_->device_set().Use(request.device).status();
    if (!there.ok() && session_->options().strict) return there;
  }
  MutexLock compiling(&compile_mutex_);
  auto all = std::make_shared<std::vector<PlacementRequest>>();
  if (requests_ != nullptr) *all = *requests_;
  for (PlacementRequest& request : requests) all->push_back(std::move(request));
  PlaceAnew(std::move(all));
  return Status();
}

void Model::ClearPlacement() {
  MutexLock compiling(&compile_mutex_);
  PlaceAnew(nullptr);
}

void Model::PlaceAnew(std::shared_ptr<const std::vector<PlacementRequest>> requests) {
  requests_ = std::move(requests);
  std::list<Entry> executors;  // their memory goes back after the lock
  std::shared_ptr<ConstantStore> constants;
  std::vector<Pool*> pools;
  {
    MutexLock lock(&mutex_);
    if (unloaded_) return;
    executors.swap(executors_);
    for (size_t d = 0; d < constant_pools_.size(); ++d) pools.push_back(constant_pools_[d].get());
    constants = std::exchange(
        constants_, std::make_shared<ConstantStore>(
                        session_->devices().first(constant_pools_.size()), pools, owner_));
  }
  executors.clear();
  constants.reset();
  for (Pool* pool : pools) pool->Trim();
}

Status Model::Prepare(const std::string& signature, const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches) {
  return Executable({signature, feeds, fetches, {}}).status();
}

Result<RunResult> Model::Run(const RunRequest& request) {
  const FallbackPolicy& policy =
      request.fallback.has_value() ? *request.fallback : session_->options().fallback;
  DeviceSet& devices = session_->device_set();
  std::vector<FallbackStep> steps;
  std::set<int> tried;
  std::string device = request.device;
  auto next = policy.chain.begin();
  for (;;) {
    if (const auto used = devices.Use(device); used.ok()) tried.insert(*used);
    bool may_repeat = true;
    auto result = RunOn(device, request, may_repeat);
    if (result.ok()) {
      result->report.fallbacks = std::move(steps);
      if (steps.empty() && request.device.empty() && !devices.preferred_note().empty()) {
        result->report.fallbacks.push_back(
            {session_->options().device, NotFound(devices.preferred_note())});
      }
      return result;
    }
    const Status failure = AfterFailure(result.status(), device);
    steps.push_back(
        {device.empty() ? std::string(devices.names()[devices.preferred()]) : device, failure});
    const auto cause = CauseOf(failure);
    const bool goes_on = cause.has_value() && policy.on.count(*cause) != 0 && may_repeat;
    while (goes_on && next != policy.chain.end()) {
      const auto used = devices.Use(*next);
      if (used.ok() && tried.count(*used) == 0) break;
      ++next;
    }
    if (!goes_on || next == policy.chain.end()) {
      if (steps.size() == 1) return failure;
      std::string before;
      for (size_t i = 0; i + 1 < steps.size(); ++i) {
        before += StrCat(i ? "; " : "", ShortName(steps[i].device), ": ", Message(steps[i].why));
      }
      return In(failure, StrCat(ShortName(device), ", after others (", before, ")"));
    }
    device = *next++;
    session_->runtime().log().Warning(path_, ": going on with ", device, ": ", Message(failure));
  }
}

// Notes a device that was lost, and names it where the failure does not.
Status Model::AfterFailure(const Status& failure, const std::string& device) {
  if (failure.code() != Code::kUnavailable || Details(failure).stage == Stage::kFile) {
    return failure;
  }
  DeviceSet& devices = session_->device_set();
  Status named = failure;
  if (const auto used = devices.Use(device); used.ok()) {
    named = WithDevice(std::move(named), devices.names()[static_cast<size_t>(*used)]);
  }
  const std::string lost = Details(named).device;
  for (size_t d = 1; d < devices.size(); ++d) {
    if (devices.names()[d] == lost) devices.MarkLost(d, failure);
  }
  return named;
}

Result<RunResult> Model::RunOn(const std::string& device, const RunRequest& request,
                               bool& may_repeat) {
  const auto begin = std::chrono::steady_clock::now();
  const RunsUnderWay::Run running(session_->runs_under_way());
  ImportRequest names{request.signature, {}, request.fetches, request.targets};
  for (const NamedTensor& feed : request.feeds) names.feeds.push_back(feed.first);
  ONCILLA_ASSIGN(const Use use, Enter());
  ONCILLA_ASSIGN(const int preferred, session_->device_set().Use(device));
  ONCILLA_TRY(session_->device_set().CheckAlive(static_cast<size_t>(preferred)));
  auto found = Executable(names, nullptr, device);
  if (found.status().code() == Code::kResourceExhausted && session_->Trim().bytes > 0) {
    // What weights lacked, idle plans of other models held.
    found = Executable(names, nullptr, device);
  }
  ONCILLA_TRY(found.status());
  const auto executor = *std::move(found);
  const CompiledGraph& compiled = executor->compiled();
  std::vector<Tensor> feeds;
  for (const NamedValue& input : compiled.graph.inputs()) {
    auto it = std::find_if(request.feeds.begin(), request.feeds.end(),
                           [&](const NamedTensor& f) { return f.first == input.name; });
    if (it == request.feeds.end()) {
      return tf_messages::NotFed(*source_, input.name, compiled.graph.fact(input.value));
    }
    ONCILLA_TRY(
        tf_messages::FeedFits(*source_, input.name, compiled.graph.fact(input.value), it->second));
    feeds.push_back(it->second);
  }
  RunResult result;
  RunControl control;
  const DeviceCounters before = CountersOf(session_->devices());
  if (request.timeout.count() > 0) control.deadline = begin + request.timeout;
  control.profile = request.profile;
  control.stats = &result.report.stats;
  std::optional<VariableStore::Turn> turn;
  if (compiled.writes_variables) {
    ONCILLA_ASSIGN(turn, variables_.TakeTurn(control.deadline));
    may_repeat = false;
  }
  ONCILLA_ASSIGN(auto outputs,
                 RunWithinMemory(*session_, *executor, feeds, control,
                                 session_->options().on_out_of_memory, result.report.memory));
  for (size_t i = 0; i < outputs.size(); ++i) {
    result.outputs.emplace_back(compiled.graph.outputs()[i].name, std::move(outputs[i]));
  }
  session_->HoldFragmentation();
  RunReport& report = result.report;
  report.devices = compiled.placement.devices;
  report.preferred = preferred;
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
  for (const auto& executor : executors) executor->DropIdle();
}

namespace {

// Where constants lie that the graph or its functions read.
using Places = std::map<std::pair<const Region*, int64_t>, int64_t>;
void ReadPlaces(const CompiledGraph& graph, Places& places) {
  for (const auto& [input, view] : graph.packed) {
    if (view.bytes > 0) places[{view.region, view.offset}] = view.bytes;
  }
  for (const auto& [name, function] : graph.functions) ReadPlaces(*function, places);
}

}  // namespace

Status Model::Repack() {
  ONCILLA_ASSIGN(const Use use, Enter());
  std::vector<std::pair<ImportRequest, std::string>> graphs;
  {
    MutexLock compiling(&compile_mutex_);
    {
      MutexLock lock(&mutex_);
      Places read;
      for (const Entry& entry : executors_) {
        ReadPlaces(entry.executor->compiled(), read);
        graphs.emplace_back(entry.request, entry.device);
      }
      int64_t needed = 0;
      for (const auto& [place, bytes] : read) needed += bytes;
      bool tight = constants_ == nullptr || constants_->bytes() <= needed;
      for (size_t d = 0; d < constant_pools_.size() && tight; ++d) {
        // Where memory was taken beforehand, constants lie in the pool of everything else.
        if (session_->device_set().memory_plan(d).commit_bytes > 0) continue;
        const BfcStats stats = constant_pools_[d]->stats();
        const int64_t most = std::max<int64_t>(stats.max_region_bytes, 1);
        tight = stats.free_in_pool() == 0 && stats.regions <= 1 + stats.pool_bytes / most;
      }
      if (tight) return Status();
    }
    PlaceAnew(requests_);
  }
  Status failure;
  for (auto graph = graphs.rbegin(); graph != graphs.rend(); ++graph) {
    const Status made = Executable(graph->first, nullptr, graph->second).status();
    if (!made.ok() && failure.ok()) failure = made;
  }
  return failure;
}

ModelMemory Model::memory() const {
  ModelMemory out;
  std::vector<std::shared_ptr<Executor>> executors;
  std::shared_ptr<ConstantStore> constants;
  {
    MutexLock lock(&mutex_);
    for (const Entry& entry : executors_) executors.push_back(entry.executor);
    constants = constants_;
  }
  if (constants != nullptr) out.constants = constants->List();
  out.variables = variables_.Values();
  for (const auto& executor : executors) {
    for (Executor::KeptPlan& plan : executor->KeptPlans()) out.plans.push_back(std::move(plan));
  }
  return out;
}

Released Model::Unload() {
  std::shared_ptr<ConstantStore> constants;
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
  constants.reset();
  variables_.Clear();
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    const int64_t bytes = constant_pools_[d]->Close() + session_->device_set().pool(d).Trim();
    released.bytes += bytes;
    released.by_device.emplace_back(session_->device_names()[d], bytes);
  }
  session_->ledger().EndOwner(owner_);
  ReturnFreeMemory();
  return released;
}

}  // namespace oncilla
