// The device connects recipes, the program cache, memory and queues. It makes few decisions itself;
// the files that it calls explain them.
#include "backends/opencl/device.h"

#include <algorithm>

#include "backends/opencl/tuning/tuning_file.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/base/free_memory.h"
#include "engine/base/hash.h"

namespace oncilla::opencl {
namespace {

using Clock = std::chrono::steady_clock;

// How long a driver may take to commit memory if the caller sets no limit; and how long Close waits
// for commitments whose callers stopped waiting.
constexpr std::chrono::milliseconds kCommitLimit(60'000), kLateLimit(1000);
constexpr int64_t kDummyBytes = 1024;  // more than any vector load of a kernel

// The stored result of an earlier probe with this device, driver and set of probes; otherwise
// probes now.
ProbeResult ProbeOrRecall(const FoundDevice& device, DiskCache* disk) {
  const ProbeSources sources = ProbeSources::Embedded();
  Sha256 hash;
  hash.UpdateField("probe 1");
  hash.UpdateField(CacheIdentity(device.facts));
  for (const Source* source :
       {sources.basics, sources.fp64, sources.fp16, sources.sub_group, sources.dot4}) {
    hash.UpdateField(source->text);
  }
  hash.UpdateField(StrCat(device.facts.claims_fp16, device.facts.claims_fp64,
                          device.facts.max_work_group, " ", device.facts.local_memory));
  const std::string key = hash.FinishHex();
  if (disk != nullptr) {
    if (disk->Crashed(key)) {
      ProbeResult result;
      result.failure =
          StrCat("the last two processes or more were killed or crashed while they tried it out; it "
                 "is left alone for an hour or longer; to try again now, remove ",
                 disk->folder());
      return result;
    }
    if (const std::optional<std::string> text = disk->Load(key)) {
      if (std::optional<ProbeResult> result = ParseProbe(*text)) return *result;
    }
  }
  ProbeResult result;
  {
    std::optional<DiskCache::InUse> in_use;
    if (disk != nullptr) in_use.emplace(*disk, key);
    result = Probe(device, sources);
  }
  // A failure that may be temporary, such as a lack of memory, is not stored.
  if (disk != nullptr && result.failure.empty() && !result.of_the_moment) {
    disk->Store(key, ToText(result));
  }
  return result;
}

}  // namespace

Result<std::unique_ptr<ClDevice>> ClDevice::Open(const FoundDevice& found, DeviceInfo info,
                                                 const ClDeviceOptions& options) {
  std::unique_ptr<ClDevice> device(new ClDevice(found, std::move(info)));
  Status status = device->Start(options);
  if (!status.ok()) {
    return WithStage(oncilla::In(status, StrCat("OpenCL device '", found.facts.name, "'")),
                     Stage::kDevice);
  }
  return device;
}

Status ClDevice::Start(const ClDeviceOptions& options) {
  if (!found_.problem.empty()) return Error(Code::kUnavailable, found_.problem);
  if (!options.cache_folder.empty()) disk_ = std::make_shared<DiskCache>(options.cache_folder);
  probe_ = ProbeOrRecall(found_, disk_.get());
  if (!probe_.failure.empty()) return Error(Code::kUnavailable, probe_.failure);
  capabilities_ = MakeCapabilities(found_.facts, probe_, options.shape);
  capabilities_.winograd = options.winograd;
  if (options.matrix_unit) capabilities_.matrix_unit = *options.matrix_unit;
  if (options.sub_buffers) capabilities_.sub_buffers = *options.sub_buffers;
  capabilities_.base_alignment = std::max(capabilities_.base_alignment, info_.alignment_bytes);
  cache_folder_ = options.cache_folder;
  ONCILLA_TRY(OpenContext(options));
  context_->one_caller = capabilities_.one_caller;
  ONCILLA_ASSIGN(service_, CreateQueue(api(), context(), found_.id, false));
  ONCILLA_ASSIGN(dummy_, CreateBuffer(api(), context(), kDummyBytes));
  programs_ =
      std::make_unique<ProgramCache>(context_, found_, capabilities_.program_binaries, disk_);
  return Status();
}

Status ClDevice::OpenContext(const ClDeviceOptions& options) {
  const std::shared_ptr<const Api>& table = found_.platform.api;
  if (options.context != nullptr) {
    ONCILLA_ASSIGN(Context theirs, Retain(api(), options.context));
    context_ = std::make_shared<DeviceContext>(table, std::move(theirs));
    return Status();
  }
  Status failure;
  const auto make = [&]() -> std::shared_ptr<DeviceContext> {
    auto made = CreateContext(api(), found_.platform.id, found_.id);
    failure = made.status();
    return made.ok() ? std::make_shared<DeviceContext>(table, *std::move(made)) : nullptr;
  };
  shared_ = options.shared;
  shared_name_ = StrCat("opencl context ", reinterpret_cast<uintptr_t>(found_.platform.id), " ",
                        reinterpret_cast<uintptr_t>(found_.id));
  context_ = shared_ != nullptr ? shared_->FindOrMake<DeviceContext>(shared_name_, make) : make();
  return failure;
}

Status ClDevice::CheckOpen() const {
  if (!closed_) return Status();
  return WithStage(Error(Code::kFailedPrecondition, "the device '", info_.name, "' is closed"),
                   Stage::kDevice);
}

void ClDevice::Close() {
  if (context_ == nullptr || closed_.exchange(true)) return;
  std::vector<Commitment> late;
  {
    std::lock_guard<std::mutex> lock(late_mutex_);
    late.swap(late_);
  }
  for (const Commitment& commitment : late) {
    if (health_.hung) break;
    const auto patience = health_.Within(kLateLimit);
    const Status done = WaitFor(api(), commitment.done.get(), Clock::now() + patience);
    if (done.code() == Code::kDeadlineExceeded) health_.hung = true;
  }
  if (health_.hung) {
    for (Commitment& commitment : late) commitment.Abandon();
    for (auto& region : condemned_) region->Abandon();
    dummy_.Abandon();
    service_.Abandon();
    context_->hung = true;
    if (shared_ != nullptr) shared_->Forget(shared_name_);
  }
  late.clear();
  condemned_.clear();
  dummy_.Reset();
  service_.Reset();
  if (programs_ != nullptr) built_before_ = programs_->built();
  programs_.reset();
  context_.reset();
}

Status ClDevice::CanRun(const NodeView& node) const {
  return FindRunnable(node, capabilities_).status();
}

Result<Packing> ClDevice::PackingFor(const NodeView& node, int input) const {
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  if (row->packing != nullptr) return row->packing(node, input, capabilities_);
  return Packing{"dense", node.inputs[static_cast<size_t>(input)].desc().bytes(), nullptr};
}

Result<std::unique_ptr<Kernel>> ClDevice::Prepare(const NodeView& node, const EarlyEnd& end) {
  ONCILLA_TRY(CheckOpen());
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  Capabilities caps = capabilities_;
  // A driver may allow a compiled kernel smaller groups than the device allows, for example because
  // of registers. In that case a recipe for smaller groups is made.
  for (int attempt = 0;; ++attempt) {
    ONCILLA_ASSIGN(const Recipe recipe, row->make(node, caps));
    if (attempt == 0 && !recipe.decision.ignored.empty()) WarnOfIgnored(recipe.decision);
    int64_t limit = caps.max_work_group;
    auto made =
        PrepareRecipe(std::string(node.op->name), recipe, static_cast<int>(node.inputs.size()),
                      static_cast<int>(node.outputs.size()), &limit, end);
    if (!made.ok()) {
      if (attempt == 3 || limit < 1 || limit >= caps.max_work_group) return made.status();
      caps.max_work_group = limit;
      continue;
    }
    std::unique_ptr<ClKernel> kernel = *std::move(made);
    for (const Fact& fact : node.inputs) {
      // Plan inputs have no buffer, and packed constants have a size of their own.
      const bool dense = !fact.absent() && !fact.has_value() && !fact.constant && fact.fixed();
      kernel->input_bytes.push_back(dense ? fact.desc().bytes() : 0);
    }
    for (const Fact& fact : node.outputs) {
      kernel->output_bytes.push_back(fact.absent() ? 0 : fact.desc().bytes());
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }
}

Status ClDevice::UseTuning(const std::string& option,
                           std::function<void(const std::string&)> warn) {
  ONCILLA_ASSIGN(const TuningFile file, FindTuning({option, cache_folder_, warn}));
  capabilities_.tuned = TableFor(file, ClassOf(found_.facts, capabilities_), found_.facts.driver);
  warn_ = std::move(warn);
  return Status();
}

void ClDevice::WarnOfIgnored(const Decision& decision) {
  if (!warn_) return;
  {
    std::lock_guard<std::mutex> lock(ignored_mutex_);
    if (!ignored_.insert(decision.layer).second) return;
  }
  warn_(StrCat("tuning: '", decision.ignored, "' is not a choice for '", decision.layer, "' on '",
               info_.name, "'; the generic one is used, ", decision.choice));
}

Result<std::unique_ptr<ClKernel>> ClDevice::PrepareRecipe(std::string op, const Recipe& recipe,
                                                          int inputs, int outputs,
                                                          int64_t* group_limit,
                                                          const EarlyEnd& end) {
  const std::string what = StrCat("opencl cannot run ", op);
  ONCILLA_TRY(oncilla::In(CheckRecipe(recipe, capabilities_, inputs, outputs), what));
  auto kernel = std::make_unique<ClKernel>();
  kernel->op = std::move(op);
  kernel->scratch = recipe.scratch_bytes;
  kernel->text = DescriptionOf(recipe);
  Status fits;
  for (const Dispatch& d : recipe.dispatches) {
    ONCILLA_ASSIGN(auto program, programs_->Get(*d.source, d.generated, d.defines, end,
                                                PlacesOf(d, capabilities_)));
    kernel->launches.push_back({d, std::move(program)});
    int64_t limit = capabilities_.max_work_group;
    const auto lock = Caller();
    if (Status status = CheckKernel(kernel->launches.back(), limit); !status.ok()) fits = status;
    if (group_limit != nullptr) *group_limit = std::min(*group_limit, limit);
  }
  if (!fits.ok()) return oncilla::In(fits, what);
  return kernel;
}

Status ClDevice::CheckKernel(const ClKernel::Launch& launch, int64_t& limit) const {
  const Dispatch& d = launch.dispatch;
  ONCILLA_ASSIGN(const KernelLimits kernel, launch.program->LimitsOf(api(), found_.id, d.entry));
  int64_t local = kernel.local_bytes;
  for (const Arg& arg : d.args) {
    if (const auto* bytes = std::get_if<Local>(&arg)) local += bytes->bytes;
  }
  if (local > capabilities_.local_memory) {
    return Unsupported("kernel ", d.entry, " of ", launch.program->name, " needs ", local,
                       " bytes of local memory, the device has ", capabilities_.local_memory);
  }
  limit = kernel.work_group;
  const int64_t group = d.local[0] * d.local[1] * d.local[2];
  if (group > limit) {
    return Unsupported("kernel ", d.entry, " of ", launch.program->name, " allows groups of ",
                       limit, ", not ", group);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (d.local[i] > std::max<int64_t>(found_.facts.max_work_items[i], 1)) {
      return Unsupported("kernel ", d.entry, " needs a group of ", d.local[i], " along axis ", i,
                         ", the device has ", found_.facts.max_work_items[i]);
    }
  }
  return Status();
}

Result<std::vector<Tensor>> ClDevice::Evaluate(const NodeView& node, std::span<const Tensor>) {
  return Unsupported("opencl cannot compute ", node.op->name, " on host tensors");
}

Result<std::unique_ptr<Region>> ClDevice::AllocateRegion(int64_t bytes, const EarlyEnd& end) {
  ONCILLA_TRY(CheckOpen());
  if (bytes <= 0) return InvalidArgument("a region of ", bytes, " bytes");
  if (bytes > capabilities_.max_allocation) {
    return WithStage(
        Exhausted("a region of ", bytes, " bytes was asked for; the largest buffer of '",
                  found_.facts.name, "' has ", capabilities_.max_allocation),
        Stage::kDevice);
  }
  ONCILLA_TRY(LookAfterLate(end));
  Commitment commitment;
  {
    std::lock_guard<std::mutex> service(service_mutex_);
    const auto lock = Caller();
    ONCILLA_ASSIGN(commitment, BeginCommit(api(), context(), service_.get(), bytes,
                                           found_.facts.unified_memory));
  }
  ONCILLA_ASSIGN(Memory buffer, Committed(std::move(commitment), end));
  return std::unique_ptr<Region>(std::make_unique<ClRegion>(
      api(), std::move(buffer), bytes, capabilities_.base_alignment, capabilities_.sub_buffers));
}

Result<Memory> ClDevice::Committed(Commitment commitment, const EarlyEnd& end) {
  constexpr std::chrono::milliseconds kLook(4);  // how soon a cancelled run is noticed
  EarlyEnd limits = end;
  if (limits.watchdog.count() <= 0) limits.watchdog = kCommitLimit;
  for (;;) {
    Status done;
    {
      const auto lock = Caller();
      done = WaitFor(api(), commitment.done.get(), std::min(end.deadline, Clock::now() + kLook));
    }
    if (done.ok()) return std::move(commitment.buffer);
    if (done.code() != Code::kDeadlineExceeded) return oncilla::In(done, commitment.what());
    const Status waits = MayWait(limits, commitment.since, commitment.what());
    if (waits.ok()) continue;
    if (waits.code() == Code::kUnavailable) health_.hung = true;
    std::lock_guard<std::mutex> lock(late_mutex_);
    late_.push_back(std::move(commitment));
    return waits;
  }
}

Status ClDevice::LookAfterLate(const EarlyEnd& end) {
  std::lock_guard<std::mutex> lock(late_mutex_);
  const auto caller = Caller();
  std::erase_if(late_, [&](const Commitment& c) { return IsDone(api(), c.done.get()); });
  for (const Commitment& commitment : late_) {
    const Status waited = MayWait({.watchdog = end.watchdog}, commitment.since, commitment.what());
    if (!waited.ok()) health_.hung = true;
    ONCILLA_TRY(waited);
  }
  return Status();
}

std::optional<FreeMemory> ClDevice::free_memory() const {
  constexpr std::string_view kExtension = "cl_amd_device_attribute_query";
  if (found_.facts.HasExtension(kExtension)) {
    constexpr cl_device_info kGlobalFreeMemory = 0x4039;  // in KiB: all, then the largest block
    size_t kib[2] = {};
    const auto lock = Caller();
    if (api().GetDeviceInfo(found_.id, kGlobalFreeMemory, sizeof(kib), kib, nullptr) ==
            CL_SUCCESS &&
        kib[0] > 0 && static_cast<int64_t>(kib[0]) <= found_.facts.global_memory / 1024) {
      return FreeMemory{static_cast<int64_t>(kib[0]) * 1024, std::string(kExtension)};
    }
  }
  if (!found_.facts.unified_memory) return std::nullopt;
  FreeMemory free;
  free.bytes = AvailableHostMemory(&free.source);
  if (free.bytes < 0) return std::nullopt;
  free.bytes = std::min(free.bytes, found_.facts.global_memory);
  free.source += ", which the device shares";
  return free;
}

Status ClDevice::ReleaseRegion(std::unique_ptr<Region> region) {
  if (dynamic_cast<ClRegion*>(region.get()) == nullptr) {
    return Internal("a region that is not this device's was released");
  }
  std::unique_ptr<ClRegion> mine(static_cast<ClRegion*>(region.release()));
  std::lock_guard<std::mutex> condemned(condemned_mutex_);
  const auto lock = Caller();
  std::erase_if(condemned_, [](const auto& old) { return !old->InUse(); });
  if (health_.hung) {
    mine->Abandon();
    return Status();
  }
  if (!mine->InUse()) return Status();
  const int64_t bytes = mine->bytes();
  condemned_.push_back(std::move(mine));
  return Internal("a region of ", bytes,
                  " bytes was released while a recording uses it; it goes when that does");
}

Result<std::unique_ptr<Queue>> ClDevice::OpenQueue(const QueueOptions& options) {
  ONCILLA_TRY(CheckOpen());
  const auto lock = Caller();
  const bool stamps = options.stamps && capabilities_.profiling;
  ONCILLA_ASSIGN(CommandQueue queue, CreateQueue(api(), context(), found_.id, stamps));
  return std::unique_ptr<Queue>(std::make_unique<ClQueue>(
      api(), std::move(queue), health_, flushes_,
      ClQueue::Options{.stamps = stamps, .looks_closely = found_.facts.type != DeviceType::kCpu}));
}

Result<std::unique_ptr<Recording>> ClDevice::Record(std::vector<Step> steps) {
  ONCILLA_TRY(CheckOpen());
  const auto lock = Caller();
  ONCILLA_ASSIGN(auto recording,
                 ClRecording::Make({api(), context(), capabilities_.base_alignment, dummy_.get(),
                                    &staged_, capabilities_.sub_buffers},
                                   steps));
  return std::unique_ptr<Recording>(std::move(recording));
}

Result<EventPtr> ClDevice::Submit(Queue& queue, const Recording& recording,
                                  std::span<const BufferView> externals,
                                  const SubmitOptions& options) {
  const auto lock = Caller();
  return static_cast<ClQueue&>(queue).Submit(static_cast<const ClRecording&>(recording), externals,
                                             options.profile);
}

Result<EventPtr> ClDevice::Transfer(Queue& queue, std::span<const Upload> uploads,
                                    std::span<const Download> downloads) {
  const auto lock = Caller();
  return static_cast<ClQueue&>(queue).Transfer(uploads, downloads);
}

bool ClDevice::Poll(const EventPtr& event) {
  const auto& mine = static_cast<const ClEvent&>(*event);
  const auto lock = Caller();
  return mine.queue == nullptr || mine.queue->Poll(mine);
}

Status ClDevice::Wait(const EventPtr& event, Deadline deadline) {
  auto& mine = static_cast<ClEvent&>(*event);
  const auto lock = Caller();
  // The outcome of settled work is known without a call to the driver. Polling unfinished work does
  // not count as a wait.
  const bool asks = mine.queue != nullptr;
  Status status = WaitForEvent(mine, deadline);
  if (asks && status.code() != Code::kDeadlineExceeded) ++waits_;
  return status;
}

DeviceCounters ClDevice::counters() const {
  return {.flushes = flushes_,
          .waits = waits_,
          .kernels_built = closed_ ? built_before_.load() : programs_->built(),
          .live_objects = CountLiveObjects().total()};
}

}  // namespace oncilla::opencl
