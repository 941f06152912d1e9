// From names to a compiled graph: which graph, on which device, and what is kept of it.
#include "engine/session/model.h"

#include <algorithm>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/free_memory.h"
#include "engine/memory/host_account.h"
#include "engine/placement/device_name.h"

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

}  // namespace

Model::Model(std::shared_ptr<Session> session, std::string path,
             std::unique_ptr<ModelSource> source, std::shared_ptr<SharedConstants> shared)
    : session_(std::move(session)),
      path_(std::move(path)),
      source_(std::make_unique<HeldSource>(std::move(source))),
      shared_constants_(std::move(shared)) {
  owner_ = session_->ledger().AddOwner(OwnerKind::kModel, path_, session_->owner_);
  // Values that change live in host memory.
  variables_.CountOn(session_->device_set().pool(0).Hold({owner_, MemoryCategory::kVariables}));
  MutexLock lock(&mutex_);
  constants_ = MakeConstants();
}

std::shared_ptr<ConstantStore> Model::MakeConstants() const {
  auto store = std::make_shared<ConstantStore>(std::span<Device* const>(), std::vector<Pool*>(),
                                               owner_, session_->abandoned_bytes_);
  store->ShareWith(shared_constants_);
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    store->AddDevice(session_->devices()[d], constant_pools_[d]);
  }
  return store;
}

Model::~Model() {
  UnloadCounting([](size_t, int64_t) {});
}

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
  ONCILLA_TRY(session_->runtime().CheckProcess());
  {
    MutexLock lock(&mutex_);
    if (!unloaded_ && !draining_) {
      ++users_;
      return Use(this);
    }
  }
  // Asked without the lock, which is taken after the session's.
  return Error(Code::kFailedPrecondition,
               session_->closed() ? "the session is closed" : "the model is unloaded");
}

Result<RunResult> Model::Run(const RunRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  ONCILLA_ASSIGN(const Use use, Enter());
  return RunSince(request, begin);
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
    const std::function<void(std::string_view, const Graph&)>& observe, const std::string& device) {
  ONCILLA_ASSIGN(const Use use, Enter());
  ONCILLA_ASSIGN(const int preferred, session_->device_set().Use(device));
  return ExecutableInUse(request, observe, preferred, Watched());
}

Result<std::shared_ptr<Executor>> Model::ExecutableInUse(
    const ImportRequest& request,
    const std::function<void(std::string_view, const Graph&)>& observe, int preferred,
    const RunControl& control) {
  // Made at each run: no stream.
  const std::string asked = "asked\n" + std::to_string(preferred) + '\n' + KeyOf(request);
  const auto find = [&](const std::string& key) {
    MutexLock lock(&mutex_);
    return observe ? nullptr : FindExecutor(key);
  };
  if (auto found = find(asked)) return found;
  // One compilation at a time: two of the same names would pack the same constants twice.
  {
    MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !compiling_; };
    if (!AwaitReady(mutex_, control, free)) {
      return WithStage(In(MayGoOn(control), "while another run compiled the model"), Stage::kRun);
    }
    compiling_ = true;
  }
  const auto done = std::unique_ptr<Model, void (*)(Model*)>(this, [](Model* model) {
    MutexLock lock(&model->mutex_);
    model->compiling_ = false;
  });
  MutexLock compiling(&compile_mutex_);
  if (auto found = find(asked)) return found;
  ONCILLA_TRY(FilesUnchanged());
  constexpr int64_t kLeastBound = int64_t{1} << 30;
  const int64_t bound =
      std::max(kLeastBound, session_->device_set().pool(0).budget()->limit_bytes());
  const WorkScope scope({std::make_shared<BoundedAccount>(bound), &control});
  auto module = source_->Import(request, session_->runtime().ops());
  if (!module.ok()) {
    ONCILLA_TRY(FilesUnchanged());
    return WithStage(module.status(), Stage::kLoad);
  }
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
  auto compiled = Compile(*std::move(module), preferred, observe, control);
  ONCILLA_TRY(FilesUnchanged());
  ONCILLA_ASSIGN(auto executor, std::move(compiled));
  // What was packed is not read again unless another device or graph wants it.
  for (const auto& file : source_->files()) file->DropPages();
  std::shared_ptr<Executor> dropped;  // its memory goes back after the lock
  MutexLock lock(&mutex_);
  ++graphs_compiled_;
  executors_.push_front({{own, asked}, executor, request, preferred});
  if (executors_.size() > kMaxExecutors) {
    dropped = std::move(executors_.back().executor);
    executors_.pop_back();
  }
  return executor;
}

Status Model::FilesUnchanged() const {
  return WithStage(CheckUnchanged(source_->files()), Stage::kLoad);
}

void Model::KnowDevices() {
  MutexLock lock(&mutex_);
  for (size_t d = constant_pools_.size(); d < session_->devices().size(); ++d) {
    constant_pools_.reserve(d + 1);
    constant_pools_.push_back(session_->device_set().MakePool(d, "constants", owner_));
    constants_->AddDevice(session_->devices()[d], constant_pools_.back());
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
  std::vector<const Graph*> graphs = {&module.main};
  for (const auto& [name, function] : module.functions) graphs.push_back(&function);
  std::set<std::string> wanted;
  for (const Graph* graph : graphs) {
    const auto wishes = GatherWishes(*graph, options.wishes);
    for (size_t n = 0; wishes.ok() && n < wishes->size(); ++n) wanted.insert((*wishes)[n].device);
  }
  // What gives variables their first values has no outputs, and is not what requests speak of.
  if (!module.main.outputs().empty()) {
    for (const std::string& text : UnmatchedRequests(graphs, options.wishes)) {
      session_->WarnOnce(StrCat(path_, ": placement: ", text));
    }
  }
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
    const std::function<void(std::string_view, const Graph&)>& observe, const RunControl& control) {
  CompileOptions options;
  options.control = control;
  options.placement = Placement(module, preferred);
  options.verify = session_->options().verify;
  options.observe = observe;
  options.precision.options = session_->options().precision;
  if (!options.precision.options.allow.empty() || !options.precision.options.deny.empty()) {
    options.precision.sources = options.placement.wishes.sources != nullptr
                                    ? options.placement.wishes.sources
                                    : std::make_shared<const SourceNodes>(source_->source_nodes());
  }
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
    const std::string line =
        StrCat(path_, ": ", count, count == 1 ? " node runs" : " nodes run", " on the CPU: ", why);
    preferred > 0 ? session_->WarnOnce(line) : session_->runtime().log().Info(line);
  }
  for (const auto& [why, count] : compiled->placement.Relaxed()) {
    session_->runtime().log().Info(path_, ": ", count, count == 1 ? " node is" : " nodes are",
                                   " not on ", why);
  }
  for (const std::string& entry : compiled->precision.unmatched) {
    session_->runtime().log().Warning(path_, ": precision: ", entry, " names no node");
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
  executor_options.abandoned_bytes = session_->abandoned_bytes_;
  executor_options.links = session_->device_set().links();
  executor_options.constants_unchanged = [this] { return FilesUnchanged(); };
  // Kernels read the constants where they are: the store goes after the executor.
  auto* executor =
      new Executor(std::move(compiled), devices, std::move(pools), owner_, executor_options);
  return std::shared_ptr<Executor>(executor,
                                   [constants = std::move(constants)](Executor* e) mutable {
                                     delete e;
                                     constants.reset();
                                   });
}

void Model::ReleaseCallables() {
  for (size_t i = 0;; ++i) {  // without a list: memory may be what there is not
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
    settled_.clear();
    executors.swap(executors_);
    for (const auto& pool : constant_pools_) pools.push_back(pool.get());
    constants = std::exchange(constants_, MakeConstants());
  }
  executors.clear();
  ReleaseCallables();
  constants.reset();
  for (Pool* pool : pools) pool->Trim();
}

Status Model::Prepare(const RunRequest& request) {
  ImportRequest wanted{request.signature, {}, request.fetches, request.targets};
  for (const auto& [name, tensor] : request.feeds) wanted.feeds.push_back(name);
  ONCILLA_ASSIGN(const auto executor, Executable(wanted, nullptr, request.device));
  const Graph& graph = executor->compiled().graph;
  std::vector<Tensor> feeds;
  for (const NamedValue& input : graph.inputs()) {
    const auto given = std::find_if(request.feeds.begin(), request.feeds.end(),
                                    [&](const auto& feed) { return feed.first == input.name; });
    if (given != request.feeds.end()) {
      feeds.push_back(given->second);
      continue;
    }
    const Fact& fact = graph.fact(input.value);
    if (!request.feeds.empty()) return NotFed(input.name, fact);
    if (fact.kind != ValueKind::kTensor || !fact.shape.known() || fact.dtype == DType::kString) {
      return {};
    }
    ONCILLA_ASSIGN(Tensor zeros, Tensor::Allocate(TensorDesc{fact.dtype, fact.shape.ToShape()}));
    std::ranges::fill(zeros.mutable_bytes(), std::byte{0});
    feeds.push_back(std::move(zeros));
  }
  return executor->PlanFor(feeds).status();
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

namespace {

// Where constants lie that the graph or its functions read: device and bytes of each.
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

Status Model::Repack() {
  ONCILLA_ASSIGN(const Use use, Enter());
  std::vector<std::pair<ImportRequest, int>> graphs;
  std::vector<int64_t> needed;  // per device, in chunks
  {
    MutexLock compiling(&compile_mutex_);
    {
      MutexLock lock(&mutex_);
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
        // Where memory was taken beforehand, constants lie in the pool of everything else.
        if (session_->device_set().memory_plan(d).commit_bytes > 0) continue;
        const BfcStats stats = constant_pools_[d]->stats();
        const int64_t most = std::max<int64_t>(stats.max_region_bytes, 1);
        tight = stats.free_in_pool() == 0 && stats.regions <= 1 + stats.pool_bytes / most;
      }
      if (tight) return Status();
    }
    PlaceAnew(requests_);
    // Room for all of them at once; what a driver refuses is then taken piece by piece.
    for (size_t d = 0; d < needed.size(); ++d) {
      if (needed[d] > 0) (void)constant_pools_[d]->Commit(needed[d]);
    }
  }
  Status failure;
  for (auto graph = graphs.rbegin(); graph != graphs.rend(); ++graph) {
    const Status made = ExecutableInUse(graph->first, nullptr, graph->second, Watched()).status();
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

bool Model::Drain(Deadline deadline) {
  MutexLock lock(&mutex_);
  draining_ = true;
  return mutex_.AwaitUntil(deadline,
                           [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
}

Released Model::Unload() {
  Released released;
  const std::span<const std::string> names = session_->device_names();
  for (const std::string& name : names) released.by_device.emplace_back(name, 0);
  UnloadCounting([&released](size_t device, int64_t bytes) {
    released.bytes += bytes;
    if (device < released.by_device.size()) released.by_device[device].second += bytes;
  });
  return released;
}

void Model::UnloadCounting(const DeviceCounter& count) {
  std::shared_ptr<ConstantStore> constants;
  std::list<Entry> executors;
  {
    MutexLock lock(&mutex_);
    if (unloaded_) return;
    unloaded_ = true;
    mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return users_ == 0; });
    executors.swap(executors_);
    constants.swap(constants_);
  }
  executors.clear();
  ReleaseCallables();
  constants.reset();
  variables_.Clear();
  source_->LetGo();
  for (size_t d = 0; d < constant_pools_.size(); ++d) {
    // What another model has too stays, and its pool with it.
    const std::shared_ptr<Pool> pool = std::move(constant_pools_[d]);
    const bool stays = shared_constants_ != nullptr && shared_constants_->Leave(*pool, owner_);
    if (!stays) count(d, pool->Close());
    // Trimming takes a little memory; what is left then goes with the session.
    const auto trim = [&]() -> Result<int64_t> {
      int64_t bytes = stays ? pool->Trim() : 0;
      if (stays) session_->KeepPool(d, pool);
      bytes += session_->CloseLeftPools(d, /*all=*/false);
      return bytes + session_->device_set().pool(d).Trim();
    };
    count(d, Fenced(trim).value_or(0));
  }
  (void)Fenced([&] { return session_->ledger().EndOwner(owner_), Status(); });
  ReturnFreeMemory();
}

}  // namespace oncilla
