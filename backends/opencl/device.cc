// The device: it joins the rows, the program cache, memory and queues; each of those files holds
// the thinking.
#include "backends/opencl/device.h"

#include <algorithm>

#include "cl_kernels/kernels.gen.h"
#include "engine/base/free_memory.h"
#include "engine/base/hash.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kDummyBytes = 1024;  // more than any vector load of a kernel

// What an earlier process found on this device with this driver and these probes, or a new probe.
ProbeResult ProbeOrRecall(const FoundDevice& device, DiskCache* disk) {
  const ProbeSources sources = ProbeSources::Embedded();
  Sha256 hash;
  hash.UpdateField("probe 1");
  hash.UpdateField(CacheIdentity(device.facts));
  for (const Source* source : {sources.basics, sources.fp64, sources.fp16}) {
    hash.UpdateField(source->text);
  }
  hash.UpdateField(StrCat(device.facts.claims_fp16, device.facts.claims_fp64,
                          device.facts.max_work_group, " ", device.facts.local_memory));
  const std::string key = hash.FinishHex();
  if (disk != nullptr) {
    if (disk->Crashed(key)) {
      ProbeResult result;
      result.failure =
          StrCat("trying it out killed an earlier process; to try again, remove ", disk->folder());
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
  // A failure may be of the moment (no memory), so it is not kept.
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
  if (!options.cache_folder.empty()) disk_ = std::make_unique<DiskCache>(options.cache_folder);
  probe_ = ProbeOrRecall(found_, disk_.get());
  if (!probe_.failure.empty()) return Error(Code::kUnavailable, probe_.failure);
  capabilities_ = MakeCapabilities(found_.facts, probe_, options.shape);
  capabilities_.base_alignment = std::max(capabilities_.base_alignment, info_.alignment_bytes);
  if (options.context != nullptr) {
    ONCILLA_ASSIGN(context_, Retain(api(), options.context));
  } else {
    ONCILLA_ASSIGN(context_, CreateContext(api(), found_.platform.id, found_.id));
  }
  ONCILLA_ASSIGN(service_, CreateQueue(api(), context_.get(), found_.id, false));
  ONCILLA_ASSIGN(dummy_, CreateBuffer(api(), context_.get(), kDummyBytes));
  programs_ = std::make_unique<ProgramCache>(api(), context_.get(), found_,
                                             capabilities_.program_binaries, disk_.get());
  return Status();
}

ClDevice::~ClDevice() {
  if (!hung_) return;
  for (auto& region : condemned_) region->Abandon();
  dummy_.Abandon();
  service_.Abandon();
  context_.Abandon();
}

std::unique_lock<std::mutex> ClDevice::Caller() const {
  return capabilities_.one_caller ? std::unique_lock<std::mutex>(caller_mutex_)
                                  : std::unique_lock<std::mutex>();
}

Status ClDevice::CanRun(const NodeView& node) const {
  return FindRunnable(node, capabilities_).status();
}

Result<Packing> ClDevice::PackingFor(const NodeView& node, int input) const {
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  if (row->packing != nullptr) return row->packing(node, input, capabilities_);
  return Packing{"dense", node.inputs[static_cast<size_t>(input)].desc().bytes(), nullptr};
}

Result<std::unique_ptr<Kernel>> ClDevice::Prepare(const NodeView& node) {
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(node, capabilities_));
  Capabilities caps = capabilities_;
  // A driver may allow one kernel smaller groups than others once it is compiled (registers); the
  // recipe is then made again for groups that fit.
  for (int attempt = 0;; ++attempt) {
    ONCILLA_ASSIGN(const Recipe recipe, row->make(node, caps));
    int64_t limit = caps.max_work_group;
    auto made =
        PrepareRecipe(std::string(node.op->name), recipe, static_cast<int>(node.inputs.size()),
                      static_cast<int>(node.outputs.size()), &limit);
    if (!made.ok()) {
      if (attempt == 3 || limit < 1 || limit >= caps.max_work_group) return made.status();
      caps.max_work_group = limit;
      continue;
    }
    std::unique_ptr<ClKernel> kernel = *std::move(made);
    for (const Fact& fact : node.inputs) {
      // Plan inputs have no buffer, and packed constants a size of their own.
      const bool dense = !fact.absent() && !fact.has_value() && !fact.constant && fact.fixed();
      kernel->input_bytes.push_back(dense ? fact.desc().bytes() : 0);
    }
    for (const Fact& fact : node.outputs) {
      kernel->output_bytes.push_back(fact.absent() ? 0 : fact.desc().bytes());
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }
}

Result<std::unique_ptr<ClKernel>> ClDevice::PrepareRecipe(std::string op, const Recipe& recipe,
                                                          int inputs, int outputs,
                                                          int64_t* group_limit) {
  const std::string what = StrCat("opencl cannot run ", op);
  ONCILLA_TRY(oncilla::In(CheckRecipe(recipe, capabilities_, inputs, outputs), what));
  auto kernel = std::make_unique<ClKernel>();
  kernel->op = std::move(op);
  kernel->scratch = recipe.scratch_bytes;
  kernel->text = ToString(recipe);
  if (kernel->text.empty()) {
    kernel->text = "nothing";  // all outputs are empty
  } else {
    kernel->text.pop_back();  // the last newline
  }
  const auto lock = Caller();
  Status fits;
  for (const Dispatch& d : recipe.dispatches) {
    ONCILLA_ASSIGN(auto program, programs_->Get(*d.source, d.generated, d.defines));
    kernel->launches.push_back({d, std::move(program)});
    int64_t limit = capabilities_.max_work_group;
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

Result<std::unique_ptr<Region>> ClDevice::AllocateRegion(int64_t bytes) {
  if (bytes <= 0) return InvalidArgument("a region of ", bytes, " bytes");
  if (bytes > capabilities_.max_allocation) {
    return WithStage(
        Exhausted("a region of ", bytes, " bytes was asked for; the largest buffer of '",
                  found_.facts.name, "' has ", capabilities_.max_allocation),
        Stage::kDevice);
  }
  std::lock_guard<std::mutex> service(service_mutex_);
  const auto lock = Caller();
  auto buffer =
      CreateCommitted(api(), context_.get(), service_.get(), bytes, found_.facts.unified_memory);
  if (!buffer.ok()) {
    if (buffer.status().code() == Code::kDeadlineExceeded) hung_ = true;
    return buffer.status();
  }
  return std::unique_ptr<Region>(
      std::make_unique<ClRegion>(api(), *std::move(buffer), bytes, capabilities_.base_alignment));
}

std::optional<FreeMemory> ClDevice::free_memory() const {
  constexpr std::string_view kExtension = "cl_amd_device_attribute_query";
  if (found_.facts.HasExtension(kExtension)) {
    constexpr cl_device_info kGlobalFreeMemory = 0x4039;  // in KiB: all, then the largest piece
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
  if (hung_) {
    mine->Abandon();
    return Status();
  }
  if (!mine->InUse()) return Status();
  const int64_t bytes = mine->bytes();
  condemned_.push_back(std::move(mine));
  return Internal("a region of ", bytes,
                  " bytes was released while a recording uses it; it goes when that does");
}

Result<std::unique_ptr<Queue>> ClDevice::OpenQueue() {
  const auto lock = Caller();
  ONCILLA_ASSIGN(CommandQueue queue,
                 CreateQueue(api(), context_.get(), found_.id, capabilities_.profiling));
  return std::unique_ptr<Queue>(
      std::make_unique<ClQueue>(api(), std::move(queue), hung_, flushes_));
}

Result<std::unique_ptr<Recording>> ClDevice::Record(std::vector<Step> steps) {
  const auto lock = Caller();
  ONCILLA_ASSIGN(
      auto recording,
      ClRecording::Make(
          {api(), context_.get(), capabilities_.base_alignment, dummy_.get(), &staged_}, steps));
  return std::unique_ptr<Recording>(std::move(recording));
}

Result<EventPtr> ClDevice::Submit(Queue& queue, const Recording& recording,
                                  std::span<const BufferView> externals,
                                  const SubmitOptions& options) {
  const auto lock = Caller();
  return static_cast<ClQueue&>(queue).Submit(static_cast<const ClRecording&>(recording), externals,
                                             options.profile && capabilities_.profiling);
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
  // What the queue has settled already is known without asking the driver. Looking in on work
  // that goes on is not counted.
  const bool asks = mine.queue != nullptr;
  Status status = WaitForEvent(mine, deadline);
  if (asks && status.code() != Code::kDeadlineExceeded) ++waits_;
  return status;
}

DeviceCounters ClDevice::counters() const {
  return {.flushes = flushes_,
          .waits = waits_,
          .kernels_built = programs_->built(),
          .live_objects = CountLiveObjects().total()};
}

}  // namespace oncilla::opencl
