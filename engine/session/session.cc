// Opening devices, and giving everything back.
#include "engine/session/session.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/base/free_memory.h"
#include "engine/device/checked_device.h"
#include "engine/session/model.h"

namespace oncilla {
namespace {

// Tests turn the checks on for whatever opens a session, programs of others included.
SessionOptions WithEnvironment(SessionOptions options) {
  const char* verify = std::getenv("ONCILLA_VERIFY");
  options.verify |= verify != nullptr && std::string_view(verify) == "1";
  return options;
}

}  // namespace

Session::Session(std::shared_ptr<Runtime> runtime, SessionOptions options)
    : runtime_(std::move(runtime)),
      options_(WithEnvironment(std::move(options))),
      tasks_(options_.max_concurrent_runs) {}

Session::~Session() { Close(); }

Result<std::shared_ptr<Session>> Session::Create(std::shared_ptr<Runtime> runtime,
                                                 SessionOptions options) {
  std::shared_ptr<Session> session(new Session(std::move(runtime), std::move(options)));
  ONCILLA_TRY(session->Open());
  return session;
}

Status Session::SeeDevices() {
  const auto count = options_.device_count.find("GPU");
  const bool none = count != options_.device_count.end() && count->second == 0;
  if (none) notes_.push_back("device_count allows no GPU");
  const std::vector<ListedDevice> cpu = {runtime_->device(0)};
  const bool named = options_.device != "auto" && !options_.device.empty() &&
                     ResolveDevice(options_.device, cpu, {}).ok();
  if (none || named) {
    visible_ = cpu;
    return Status();
  }
  visible_ = runtime_->devices();
  notes_ = runtime_->notes();
  if (!options_.visible_devices.empty()) {
    ONCILLA_ASSIGN(visible_, SeeOnly(visible_, options_.visible_devices,
                                     "not among the session's visible devices"));
  }
  if (count != options_.device_count.end()) {
    visible_ = SeeFirst(std::move(visible_), count->second,
                        StrCat("device_count allows ", count->second, " GPU"));
  }
  return Status();
}

Status Session::Open() {
  if (options_.threads > 0) own_threads_ = std::make_unique<ThreadPool>(options_.threads);
  owner_ = ledger_.AddOwner(OwnerKind::kSession, "session");
  ONCILLA_TRY(SeeDevices());
  ONCILLA_ASSIGN(const size_t preferred, ResolveDevice(options_.device, visible_, notes_));
  std::vector<size_t> wanted = {0};
  if (preferred != 0) wanted.push_back(preferred);
  for (size_t index : wanted) {
    const ListedDevice& listed = visible_[index];
    OpenOptions open;
    open.threads = own_threads_ != nullptr ? own_threads_.get() : &runtime_->threads();
    open.plain = options_.device == "cpu:plain";
    open.cache_dir = runtime_->options().cache_dir;
    open.host_memory = runtime_->options().host_memory;
    auto device = listed.backend->open(listed.info, open);
    if (!device.ok()) {
      return WithStage(WithDevice(In(device.status(), StrCat("opening ", listed.short_name(), " (",
                                                             listed.info.name, ")")),
                                  listed.name),
                       Stage::kDevice);
    }
    if (options_.verify) *device = std::make_unique<CheckedDevice>(*std::move(device));
    devices_.push_back(*std::move(device));
    device_ptrs_.push_back(devices_.back().get());
    device_names_.push_back(listed.name);
    int64_t limit = options_.memory_limit_bytes > 0 ? options_.memory_limit_bytes
                                                    : DefaultLimitBytes(listed.info);
    if (options_.memory_limit_fraction > 0) {
      limit = std::min(limit, static_cast<int64_t>(options_.memory_limit_fraction *
                                                   static_cast<double>(listed.info.memory_bytes)));
    }
    budgets_.push_back(std::make_shared<MemoryBudget>(limit));
    pools_.push_back(MakePool(devices_.size() - 1, "arenas", owner_));
    links_.push_back(std::make_shared<DeviceLink>(devices_.back().get(), pools_.back().get(),
                                                  listed.name,
                                                  std::chrono::milliseconds(options_.watchdog_ms)));
  }
  if (options_.log_device_placement) {
    // TensorFlow's words: what was asked for is told whatever the level of the log.
    runtime_->log().Warning("Device mapping:");
    for (size_t index : wanted) {
      const ListedDevice& device = visible_[index];
      runtime_->log().Warning(device.name, " -> ", device.info.name, ", ", device.info.id);
    }
  }
  return Status();
}

std::unique_ptr<Pool> Session::MakePool(size_t device, std::string name, OwnerId owner) {
  PoolOptions options;
  options.name = std::move(name);
  options.device_name = device_names_[device];
  options.budget = budgets_[device];
  options.exact = true;
  options.owner = owner;
  return std::make_unique<Pool>(devices_[device].get(), &ledger_, std::move(options));
}

Result<std::shared_ptr<Model>> Session::Load(const std::string& path,
                                             const OpenModelOptions& options) {
  {
    MutexLock lock(&mutex_);
    if (closed_) return Error(Code::kFailedPrecondition, "the session is closed");
  }
  auto source = OpenModel(path, options);
  if (!source.ok()) return WithStage(source.status(), Stage::kLoad);
  std::shared_ptr<Model> model(new Model(shared_from_this(), path, *std::move(source)));
  model->stored_devices_ = options.stored_devices;
  MutexLock lock(&mutex_);
  if (closed_) return Error(Code::kFailedPrecondition, "the session was closed while loading");
  std::erase_if(models_, [](const auto& m) { return m.expired(); });
  models_.push_back(model);
  return model;
}

Released Session::Close(const CloseOptions& options) {
  std::vector<std::shared_ptr<Model>> models;
  {
    MutexLock lock(&mutex_);
    if (closed_) return {};
    closed_ = true;
    for (const auto& weak : models_) {
      if (auto model = weak.lock()) models.push_back(std::move(model));
    }
  }
  if (options.mode == CloseMode::kDrain && options.timeout.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + options.timeout;
    bool idle = true;
    for (const auto& model : models) idle &= model->Drain(deadline);
    if (!idle) stop_.Cancel();
  }
  if (options.mode == CloseMode::kCancel) stop_.Cancel();
  Released released;
  std::map<std::string, int64_t> by_device;
  for (const auto& model : models) {
    for (const auto& [name, bytes] : model->Unload().by_device) by_device[name] += bytes;
  }
  for (const auto& link : links_) link->Close();
  for (size_t d = 0; d < pools_.size(); ++d) by_device[device_names_[d]] += pools_[d]->Close();
  for (const auto& [name, bytes] : by_device) {
    released.bytes += bytes;
    released.by_device.emplace_back(name, bytes);
  }
  return released;
}

Released Session::Trim() {
  std::vector<std::shared_ptr<Model>> models;
  {
    MutexLock lock(&mutex_);
    if (closed_) return {};
    for (const auto& weak : models_) {
      if (auto model = weak.lock()) models.push_back(std::move(model));
    }
  }
  std::vector<int64_t> before;
  for (const auto& budget : budgets_) before.push_back(budget->used_bytes());
  for (const auto& model : models) model->DropIdle();
  Released released;
  for (size_t d = 0; d < pools_.size(); ++d) {
    pools_[d]->Trim();
    const int64_t bytes = std::max<int64_t>(0, before[d] - budgets_[d]->used_bytes());
    released.bytes += bytes;
    released.by_device.emplace_back(device_names_[d], bytes);
  }
  ReturnFreeMemory();
  return released;
}

Status Session::SetMemoryLimit(std::string_view device, int64_t bytes) {
  if (bytes < 1) return WithStage(InvalidArgument("the limit is ", bytes), Stage::kOptions);
  std::string names;
  for (size_t d = 0; d < device_names_.size(); ++d) {
    if (device_names_[d] == device) {
      budgets_[d]->SetLimit(bytes);
      return Status();
    }
    names += " " + device_names_[d];
  }
  return WithStage(NotFound("device '", device, "' is not in use; in use:", names), Stage::kDevice);
}

std::vector<DeviceMemory> Session::Memory() const {
  std::vector<DeviceMemory> out;
  for (size_t d = 0; d < pools_.size(); ++d) {
    DeviceMemory memory;
    memory.device = device_names_[d];
    memory.in_use_bytes = ledger_.TotalBytes(device_names_[d]);
    memory.pool_bytes = budgets_[d]->used_bytes();
    memory.peak_bytes = budgets_[d]->peak_bytes();
    memory.limit_bytes = budgets_[d]->limit_bytes();
    out.push_back(std::move(memory));
  }
  return out;
}

int64_t Session::ArenaBytes(const Plan& plan, int device) const {
  int64_t sum = 0;
  for (int64_t bytes : plan.arenas[device].block_bytes) {
    sum = SaturatingAdd(sum, pools_[device]->Rounded(bytes));
  }
  return sum;
}

Result<DeviceTensor> Session::ToDevice(const Tensor& tensor, std::string_view device) {
  for (size_t d = 0; d < links_.size(); ++d) {
    if (device_names_[d] != device) continue;
    if (device_ptrs_[d]->info().host_memory) {
      return WithStage(InvalidArgument("the memory of ", device, " is the host's: feed the tensor"),
                       Stage::kOptions);
    }
    return links_[d]->Write(tensor, owner_);
  }
  return WithStage(NotFound("device '", device, "' is not in use"), Stage::kDevice);
}

std::string Session::MemoryReport() const { return ledger_.Report(); }

}  // namespace oncilla
