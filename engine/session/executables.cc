// From names to a compiled graph: which graph, for which device, and what is kept of it.
#include "engine/session/executables.h"

#include <algorithm>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/free_memory.h"
#include "engine/graph/patch.h"
#include "engine/memory/host_account.h"
#include "engine/placement/device_name.h"

namespace oncilla {
namespace {

// The entries of strict_except as requests, for which close names can be suggested.
std::shared_ptr<const std::vector<PlacementRequest>> AsRequests(
    const std::vector<std::string>& entries) {
  auto requests = std::make_shared<std::vector<PlacementRequest>>();
  for (const std::string& entry : entries) {
    PlacementRequest& request = requests->emplace_back();
    (entry.starts_with("op:") ? request.op : request.nodes) =
        entry.starts_with("op:") ? entry.substr(3) : entry;
  }
  return requests;
}

// The memory of the constants that the graph or its functions read: the device and the size of
// each.
using Places = std::map<std::pair<const Region*, int64_t>, std::pair<int, int64_t>>;
void ReadPlaces(const CompiledGraph& graph, Places& places) {
  for (const auto& [input, view] : graph.packed) {
    if (view.bytes == 0) continue;
    const int device = graph.graph.node(NodeId{input.first}).device;
    places[{view.region, view.offset}] = {device, view.bytes};
  }
  for (const auto& [name, function] : graph.functions) ReadPlaces(*function, places);
}

}  // namespace

Executables::Executables(Session& session, std::string name, HeldSource& source,
                         StoredDevices stored_devices, std::shared_ptr<SharedConstants> shared)
    : session_(session),
      name_(std::move(name)),
      source_(source),
      stored_devices_(stored_devices),
      shared_constants_(std::move(shared)),
      owner_(
          session.memory().ledger().AddOwner(OwnerKind::kModel, name_, session.memory().owner())) {
  // Variables are kept in host memory.
  variables_.CountOn(session_.device_set().pool(0).Hold({owner_, MemoryCategory::kVariables}));
  MutexLock lock(&mutex_);
  constants_ = MakeConstants();
}

std::shared_ptr<ConstantStore> Executables::MakeConstants() const {
  auto store = std::make_shared<ConstantStore>(std::span<Device* const>(), std::vector<Pool*>(),
                                               owner_, session_.memory().abandoned_account());
  store->ShareWith(shared_constants_);
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    store->AddDevice(session_.device_set().devices()[d], constant_pools_[d]);
  }
  return store;
}

std::shared_ptr<Executor> Executables::FindExecutor(const std::string& key) {
  for (auto it = executors_.begin(); it != executors_.end(); ++it) {
    if (std::find(it->keys.begin(), it->keys.end(), key) == it->keys.end()) continue;
    executors_.splice(executors_.begin(), executors_, it);
    return executors_.front().executor;
  }
  return nullptr;
}

// Imports a module and removes the inputs that nothing needs; `taken` gets the remaining ones.
Result<Module> Executables::Import(const ImportRequest& request, ImportRequest& taken) {
  auto module = source_.Import(request, session_.runtime().ops());
  if (!module.ok()) {
    ONCILLA_TRY(FilesUnchanged());
    return WithStage(module.status(), Stage::kLoad);
  }
  auto needed = WithoutUnusedInputs(std::move(module->main));
  if (!needed.ok()) return WithStage(needed.status(), Stage::kLoad);
  module->main = *std::move(needed);
  taken = request;
  taken.feeds.clear();
  for (const NamedValue& input : module->main.inputs()) taken.feeds.push_back(input.name);
  std::sort(taken.feeds.begin(), taken.feeds.end());
  return module;
}

WorkLimits Executables::LimitsFor(const RunControl& control) const {
  constexpr int64_t kLeastBound = int64_t{1} << 30;
  const int64_t bound =
      std::max(kLeastBound, session_.device_set().pool(0).budget()->limit_bytes());
  // A caller that compiles outside of a run may have set limits in the work scope.
  const EarlyEnd* end = control.may_end_early() ? &control : WorkScope::Current().end;
  return {std::make_shared<BoundedAccount>(bound), end != nullptr ? end : &control};
}

Status Executables::TryImport(const ImportRequest& request, const RunControl& control) {
  ONCILLA_TRY(FilesUnchanged());
  const WorkScope scope(LimitsFor(control));
  ImportRequest taken;
  return Import(request, taken).status();
}

Result<std::shared_ptr<Executor>> Executables::FindFor(const ImportRequest& request, int preferred,
                                                       const RunControl& control,
                                                       const GraphObserver& observe) {
  // This runs for every run, so it avoids streams.
  const std::string asked = "asked\n" + std::to_string(preferred) + '\n' + KeyOf(request);
  const auto find = [&](const std::string& key) {
    MutexLock lock(&mutex_);
    return observe ? nullptr : FindExecutor(key);
  };
  if (auto found = find(asked)) return found;
  // One compilation at a time: two for the same names would pack the same constants twice.
  auto turn = compiling_.Take(control, "while another run compiled the model");
  if (!turn.ok()) return WithStage(turn.status(), Stage::kRun);
  MutexLock compiling(&compile_mutex_);
  if (auto found = find(asked)) return found;
  ONCILLA_TRY(FilesUnchanged());
  const WorkScope scope(LimitsFor(control));
  ImportRequest taken;
  ONCILLA_ASSIGN(Module module, Import(request, taken));
  const std::string own = StrCat("takes\n", preferred, '\n', KeyOf(taken));
  {
    MutexLock lock(&mutex_);
    if (auto found = observe ? nullptr : FindExecutor(own)) {
      std::vector<std::string>& keys = executors_.front().keys;
      if (keys.size() < kMaxKeys) keys.push_back(asked);
      return found;
    }
  }
  ONCILLA_TRY(PrepareVariables(module, control));
  auto made = Make(std::move(module), preferred, observe, control);
  ONCILLA_TRY(FilesUnchanged());
  ONCILLA_ASSIGN(auto executor, std::move(made));
  // The packed weights are not read from the file again unless another device or graph needs them.
  for (const auto& file : source_.files()) file->DropPages();
  std::shared_ptr<Executor> dropped;  // its memory is freed after the lock is released
  MutexLock lock(&mutex_);
  ++graphs_compiled_;
  executors_.push_front({{own, asked}, executor, request, preferred});
  if (executors_.size() > kMaxExecutors) {
    dropped = std::move(executors_.back().executor);
    executors_.pop_back();
  }
  return executor;
}

Status Executables::FilesUnchanged() const {
  return WithStage(CheckUnchanged(source_.files()), Stage::kLoad);
}

void Executables::KnowDevices() {
  MutexLock lock(&mutex_);
  for (size_t d = constant_pools_.size(); d < session_.device_set().devices().size(); ++d) {
    // Reserve first: if memory is refused, neither list contains the device.
    constant_pools_.reserve(d + 1);
    std::shared_ptr<Pool> pool = session_.device_set().MakePool(d, "constants", owner_);
    constants_->AddDevice(session_.device_set().devices()[d], pool);
    constant_pools_.push_back(std::move(pool));
  }
}

// Warns of requests that match nothing in these graphs, and suggests close names.
void Executables::TellUnmatched(std::span<const Graph* const> graphs,
                                std::shared_ptr<const std::vector<PlacementRequest>> requests,
                                std::string_view what) {
  if (requests == nullptr || requests->empty()) return;
  WishOptions options;
  options.requests = std::move(requests);
  options.sources = std::make_shared<SourceNodes>(source_.source_nodes());
  for (const std::string& text : UnmatchedRequests(graphs, options)) {
    session_.WarnOnce(StrCat(name_, ": ", what, ": ", text));
  }
}

// Opens the devices that nodes are requested on, so that they can be placed there.
PlacementOptions Executables::Placement(const Module& module, int preferred) {
  PlacementOptions options;
  options.preferred = preferred;
  options.strict = session_.options().strict;
  options.strict_except = session_.options().strict_except;
  if (!options.strict_except.empty()) {
    options.wishes.sources = std::make_shared<SourceNodes>(source_.source_nodes());
  }
  options.stored_hard = stored_devices_ == StoredDevices::kRespect;
  options.wishes.follow_stored = stored_devices_ != StoredDevices::kIgnore;
  options.wishes.requests = requests_;
  std::vector<const Graph*> graphs = {&module.main};
  for (const auto& [name, function] : module.functions) graphs.push_back(&function);
  // The graph that initialises variables has no outputs; placement requests do not refer to it.
  const bool asked_for = !module.main.outputs().empty();
  if (asked_for) TellUnmatched(graphs, AsRequests(options.strict_except), "strict_except");
  if (!options.wishes.follow_stored && requests_ == nullptr) return options;
  if (options.wishes.sources == nullptr) {
    options.wishes.sources = std::make_shared<SourceNodes>(source_.source_nodes());
  }
  std::set<std::string> wanted;
  for (const Graph* graph : graphs) {
    const auto wishes = GatherWishes(*graph, options.wishes);
    for (size_t n = 0; wishes.ok() && n < wishes->size(); ++n) wanted.insert((*wishes)[n].device);
  }
  if (asked_for) TellUnmatched(graphs, requests_, "placement");
  for (const std::string& device : wanted) {
    if (device.empty()) continue;
    // Placement reports a device that does not exist or cannot be opened.
    if (const auto used = session_.device_set().Use(device); !used.ok()) {
      session_.runtime().log().Info(name_, ": ", Message(used.status()));
    }
  }
  return options;
}

void Executables::LogPlacement(const CompiledGraph& compiled, int preferred) const {
  for (const auto& [why, count] : compiled.placement.Refusals()) {
    const std::string line =
        StrCat(name_, ": ", count, count == 1 ? " node runs" : " nodes run", " on the CPU: ", why);
    preferred > 0 ? session_.WarnOnce(line) : session_.runtime().log().Info(line);
  }
  for (const auto& [why, count] : compiled.placement.Relaxed()) {
    session_.runtime().log().Info(name_, ": ", count, count == 1 ? " node is" : " nodes are",
                                  " not on ", why);
  }
  for (const std::string& entry : compiled.precision.unmatched) {
    session_.runtime().log().Warning(name_, ": precision: ", entry, " names no node");
  }
  if (session_.options().log_device_placement) {
    for (const NodePlacement& node : compiled.placement.nodes) {
      session_.runtime().log().Warning(
          node.node, ": (", node.op,
          "): ", compiled.placement.devices[static_cast<size_t>(node.device)]);
    }
  }
}

Result<std::shared_ptr<Executor>> Executables::Make(Module module, int preferred,
                                                    const GraphObserver& observe,
                                                    const RunControl& control) {
  CompileOptions options;
  options.control = control;
  options.placement = Placement(module, preferred);
  options.verify = session_.options().verify;
  options.observe = observe;
  options.precision.options = session_.options().precision;
  if (!options.precision.options.allow.empty() || !options.precision.options.deny.empty()) {
    options.precision.sources = options.placement.wishes.sources != nullptr
                                    ? options.placement.wishes.sources
                                    : std::make_shared<const SourceNodes>(source_.source_nodes());
  }
  KnowDevices();
  const auto devices = session_.device_set().devices().first(constant_pools_.size());
  const auto names = session_.device_set().names().first(devices.size());
  std::shared_ptr<ConstantStore> constants;
  {
    MutexLock lock(&mutex_);
    constants = constants_;
  }
  ONCILLA_ASSIGN(auto compiled, Compile(std::move(module), devices, names, *constants, options));
  // The sources of constants and the results of folding are free now: often as much as the model.
  ReturnFreeMemory();
  LogPlacement(*compiled, preferred);
  std::vector<Pool*> pools;
  for (size_t d = 0; d < devices.size(); ++d) pools.push_back(&session_.device_set().pool(d));
  ExecutorOptions executor_options;
  executor_options.max_instances = session_.options().max_concurrent_runs;
  executor_options.variables = &variables_;
  executor_options.abandoned_bytes = session_.memory().abandoned_account();
  executor_options.links = session_.device_set().links();
  executor_options.constants_unchanged = [this] { return FilesUnchanged(); };
  executor_options.constants = std::move(constants);
  return std::make_shared<Executor>(std::move(compiled), devices, std::move(pools), owner_,
                                    executor_options);
}

void Executables::ReleaseCallables() {
  for (size_t i = 0;; ++i) {  // no list: there may be no memory for one
    std::shared_ptr<CallableState> callable;
    {
      MutexLock lock(&mutex_);
      if (i >= callables_.size()) return;
      callable = callables_[i].lock();
    }
    if (callable == nullptr) continue;
    std::shared_ptr<const CallableState::Bound> dropped;
    MutexLock lock(&callable->mutex);
    dropped.swap(callable->bound);
  }
}

void Executables::Place(std::vector<PlacementRequest> requests) {
  MutexLock compiling(&compile_mutex_);
  auto all = std::make_shared<std::vector<PlacementRequest>>();
  if (requests_ != nullptr) *all = *requests_;
  for (PlacementRequest& request : requests) all->push_back(std::move(request));
  PlaceAnew(std::move(all));
}

void Executables::ClearPlacement() {
  MutexLock compiling(&compile_mutex_);
  PlaceAnew(nullptr);
}

void Executables::PlaceAnew(std::shared_ptr<const std::vector<PlacementRequest>> requests) {
  requests_ = std::move(requests);
  std::list<Entry> executors;  // their memory is freed after the lock is released
  std::shared_ptr<ConstantStore> constants;
  std::vector<Pool*> pools;
  {
    MutexLock lock(&mutex_);
    if (constants_ == nullptr) return;
    executors.swap(executors_);
    for (const auto& pool : constant_pools_) pools.push_back(pool.get());
    constants = std::exchange(constants_, MakeConstants());
  }
  executors.clear();
  ReleaseCallables();
  constants.reset();
  for (Pool* pool : pools) pool->Trim();
}

void Executables::AddCallable(const std::shared_ptr<CallableState>& callable) {
  MutexLock lock(&mutex_);
  std::erase_if(callables_, [](const auto& weak) { return weak.expired(); });
  callables_.push_back(callable);
}

std::vector<std::shared_ptr<Executor>> Executables::All() const {
  std::vector<std::shared_ptr<Executor>> all;
  MutexLock lock(&mutex_);
  for (const Entry& entry : executors_) all.push_back(entry.executor);
  return all;
}

void Executables::DropIdle() {
  std::vector<std::shared_ptr<Executor>> executors = All();
  std::vector<std::shared_ptr<CallableState>> callables;
  {
    MutexLock lock(&mutex_);
    for (const auto& weak : callables_) {
      if (auto callable = weak.lock()) callables.push_back(std::move(callable));
    }
  }
  for (const auto& callable : callables) {
    MutexLock lock(&callable->mutex);
    if (callable->bound != nullptr) executors.push_back(callable->bound->executor);
  }
  for (const auto& executor : executors) executor->DropIdle();
}

Status Executables::Repack(const RunControl& control) {
  std::vector<std::pair<ImportRequest, int>> graphs;
  std::vector<int64_t> needed;  // per device, in chunks
  {
    MutexLock compiling(&compile_mutex_);
    {
      MutexLock lock(&mutex_);
      // Add up what the compiled graphs read, and check whether the pools hold more than that.
      Places read;
      for (const Entry& entry : executors_) {
        ReadPlaces(entry.executor->compiled(), read);
        graphs.emplace_back(entry.request, entry.preferred);
      }
      int64_t bytes = 0;
      needed.resize(constant_pools_.size());
      for (const auto& [place, held] : read) {
        const auto device = static_cast<size_t>(held.first);
        bytes += held.second;
        if (device < needed.size()) {
          needed[device] += constant_pools_[device]->Rounded(held.second);
        }
      }
      bool tight = constants_ == nullptr || constants_->bytes() <= bytes;
      for (size_t d = 0; d < constant_pools_.size() && tight; ++d) {
        // If memory was preallocated, constants share one pool with everything else.
        if (session_.device_set().memory_plan(d).commit_bytes > 0) continue;
        const BfcStats stats = constant_pools_[d]->stats();
        const int64_t most = std::max<int64_t>(stats.max_region_bytes, 1);
        tight = stats.free_in_pool() == 0 && stats.regions <= 1 + stats.pool_bytes / most;
      }
      if (tight) return Status();
    }
    PlaceAnew(requests_);
    // Allocate room for all of them at once; if a driver refuses, they are allocated one by one.
    for (size_t d = 0; d < needed.size(); ++d) {
      if (needed[d] > 0) (void)constant_pools_[d]->Commit(needed[d]);
    }
  }
  Status failure;
  for (auto graph = graphs.rbegin(); graph != graphs.rend(); ++graph) {
    const Status made = FindFor(graph->first, graph->second, control).status();
    if (!made.ok() && failure.ok()) failure = made;
  }
  return failure;
}

Status Executables::PrepareVariables(const Module& module, const RunControl& control) {
  std::vector<std::string> resources, missing;
  for (const ModuleVariable& variable : module.variables) {
    resources.push_back(variable.resource);
    if (variable.initial.valid()) {
      ONCILLA_TRY(variables_.Initialise(variable.name, variable.initial));
    }
    if (!variables_.Has(variable.name)) missing.push_back(variable.resource);
  }
  BecomeState(resources);
  if (missing.empty()) return Status();
  auto initialiser = source_.ImportInitialiser(missing, session_.runtime().ops());
  if (!initialiser.ok()) return WithStage(initialiser.status(), Stage::kLoad);
  if (initialiser->main.nodes().empty()) return Status();
  for (const ModuleVariable& variable : initialiser->variables) {
    if (variable.initial.valid()) {
      ONCILLA_TRY(variables_.Initialise(variable.name, variable.initial));
    }
  }
  // Variables are kept in host memory, so the initialiser runs on the CPU.
  ONCILLA_ASSIGN(const auto executor, Make(*std::move(initialiser), 0, nullptr, control));
  return executor->Run({}, control).status();
}

void Executables::BecomeState(const std::vector<std::string>& resources) {
  source_.NoteState(resources);
  std::list<Entry> dropped;  // their memory is freed after the lock is released
  {
    MutexLock lock(&mutex_);
    bool changed = false;
    for (const std::string& name : resources) changed |= state_.insert(name).second;
    if (!changed) return;
    dropped.swap(executors_);
  }
  ReleaseCallables();
}

Status Executables::Assign(const std::string& variable, Tensor value) {
  MutexLock compiling(&compile_mutex_);
  BecomeState({variable});
  return variables_.Assign(variable, std::move(value));
}

ModelCounters Executables::counters() const {
  ModelCounters out;
  MutexLock lock(&mutex_);
  out.graphs_compiled = graphs_compiled_;
  for (const Entry& entry : executors_) {
    const ExecutorCounters c = entry.executor->counters();
    out.plans_made += c.plans_made;
    out.plans_refused += c.plans_refused;
    out.instances_made += c.instances_made;
  }
  if (constants_ != nullptr) {
    out.constants_packed = constants_->packings();
    out.constant_bytes = constants_->bytes();
  }
  for (Device* device : session_.device_set().devices())
    out.kernels_built += device->counters().kernels_built;
  return out;
}

ModelMemory Executables::memory() const {
  ModelMemory out;
  std::shared_ptr<ConstantStore> constants;
  {
    MutexLock lock(&mutex_);
    constants = constants_;
  }
  if (constants != nullptr) out.constants = constants->List();
  out.variables = variables_.Values();
  for (const auto& executor : All()) {
    for (Executor::KeptPlan& plan : executor->KeptPlans()) out.plans.push_back(std::move(plan));
  }
  return out;
}

void Executables::Release(const DeviceCounter& count) {
  std::shared_ptr<ConstantStore> constants;
  std::list<Entry> executors;
  {
    MutexLock lock(&mutex_);
    executors.swap(executors_);
    constants.swap(constants_);
  }
  executors.clear();
  ReleaseCallables();
  constants.reset();
  variables_.Clear();
  source_.LetGo();
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    // Constants that another model shares stay, and the pool with them.
    const std::shared_ptr<Pool> pool = std::move(constant_pools_[d]);
    const bool stays = shared_constants_ != nullptr && shared_constants_->Leave(*pool, owner_);
    if (!stays) count(d, pool->Close());
    // Trimming may need a little memory; if it fails, the rest goes back when the session closes.
    const auto trim = [&]() -> Result<int64_t> {
      int64_t bytes = stays ? pool->Trim() : 0;
      if (stays) session_.memory().KeepPool(d, pool);
      bytes += session_.memory().CloseKeptPools(d, /*all=*/false);
      return bytes + session_.device_set().pool(d).Trim();
    };
    count(d, Fenced(trim).value_or(0));
  }
  (void)Fenced([&] { return session_.memory().ledger().EndOwner(owner_), Status(); });
  ReturnFreeMemory();
}

}  // namespace oncilla
