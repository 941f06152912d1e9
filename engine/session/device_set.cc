// Seeing devices, opening them on demand, and remembering which are lost.
#include "engine/session/device_set.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/device/checked_device.h"
#include "engine/placement/device_name.h"
#include "engine/session/fallback.h"

namespace oncilla {

DeviceSet::DeviceSet(Runtime& runtime, const SessionOptions& options, ThreadPool& threads,
                     Ledger& ledger, OwnerId owner)
    : runtime_(runtime), options_(options), threads_(threads), ledger_(ledger), owner_(owner) {}

Status DeviceSet::SeeDevices() {
  const auto gpus = options_.device_count.find("GPU");
  const auto cpus = options_.device_count.find("CPU");
  const bool none = gpus != options_.device_count.end() && gpus->second == 0;
  if (none) notes_.push_back("device_count allows no GPU");
  std::vector<LogicalDevice> parts = options_.logical_devices;
  if (cpus != options_.device_count.end() && cpus->second > 1) {
    const bool divided = std::any_of(parts.begin(), parts.end(), [](const LogicalDevice& part) {
      return part.physical.find("CPU") != std::string::npos;
    });
    if (divided) {
      return WithStage(InvalidArgument("device_count asks for ", cpus->second,
                                       " CPUs and logical_devices divides the CPU; give one"),
                       Stage::kOptions);
    }
    parts.resize(parts.size() + static_cast<size_t>(cpus->second), {"CPU:0"});
  }
  std::vector<ListedDevice> cpu = {runtime_.device(0)};
  const bool only_cpu = std::all_of(parts.begin(), parts.end(), [&](const LogicalDevice& part) {
    return ResolveDevice(part.physical, cpu, {}).ok();
  });
  if (only_cpu) {
    ONCILLA_ASSIGN(cpu, Divide(std::move(cpu), parts));
  }
  const bool named = only_cpu && options_.device != "auto" && !options_.device.empty() &&
                     ResolveDevice(options_.device, cpu, {}).ok();
  // Who names the CPU loads no driver, unless it may go on with other devices.
  const bool others = std::any_of(options_.fallback.chain.begin(), options_.fallback.chain.end(),
                                  [&](const std::string& spec) {
                                    return spec == "auto" || !ResolveDevice(spec, cpu, {}).ok();
                                  });
  if (none || (named && !others)) {
    knows_gpus_ = none;
    visible_ = cpu;
    return Status();
  }
  visible_ = runtime_.devices();
  notes_ = runtime_.notes();
  if (!options_.visible_devices.empty()) {
    ONCILLA_ASSIGN(visible_, SeeOnly(visible_, options_.visible_devices,
                                     "not among the session's visible devices"));
  }
  if (gpus != options_.device_count.end()) {
    visible_ = SeeFirst(std::move(visible_), gpus->second,
                        StrCat("device_count allows ", gpus->second, " GPU"));
  }
  ONCILLA_ASSIGN(visible_, Divide(std::move(visible_), parts));
  return Status();
}

Status DeviceSet::Open() {
  ONCILLA_ASSIGN(memory_options_,
                 AllMemoryOptions(options_.device_memory, options_.memory_limit_bytes,
                                  options_.memory_limit_fraction));
  ONCILLA_TRY(CheckFallback(options_.fallback));
  ONCILLA_TRY(SeeDevices());
  TellAbsent();
  plans_.reserve(visible_.size());
  devices_.reserve(visible_.size());
  pointers_.reserve(visible_.size());
  names_.reserve(visible_.size());
  budgets_.reserve(visible_.size());
  pools_.reserve(visible_.size());
  MutexLock lock(&mutex_);
  ONCILLA_TRY(UseVisible(0).status());
  return OpenPreferred();
}

void DeviceSet::TellAbsent() const {
  for (const std::string& text : AbsentKeys(memory_options_, visible_, knows_gpus_)) {
    runtime_.log().Warning("device_memory: ", text);
  }
  for (const std::string& spec : options_.fallback.chain) {
    const Status there = ResolveDevice(spec, visible_, notes_).status();
    if (!there.ok()) runtime_.log().Warning("fallback: ", Message(there));
  }
}

// The device that is asked for; where that is not there or cannot be opened, the fallback's next
// one, and for "auto" any other.
Status DeviceSet::OpenPreferred() {
  const bool any = options_.device.empty() || options_.device == "auto";
  std::vector<std::string> specs = {options_.device};
  if (options_.fallback.on.count(FallbackCause::kNoDevice) != 0) {
    specs.insert(specs.end(), options_.fallback.chain.begin(), options_.fallback.chain.end());
  }
  for (size_t i = 1; any && i < visible_.size(); ++i) specs.push_back(visible_[i].name);
  if (any) specs.emplace_back("cpu");
  Status failure;
  std::set<size_t> tried;
  for (const std::string& spec : specs) {
    const auto index = ResolveDevice(spec, visible_, notes_);
    if (index.ok() && !tried.insert(*index).second) continue;
    const auto opened = index.ok() ? UseVisible(*index) : Result<int>(index.status());
    if (opened.ok()) {
      preferred_ = *opened;
      if (failure.ok()) return {};
      preferred_note_ = Message(failure);
      runtime_.log().Warning(preferred_note_, "; going on with ",
                             ShortDeviceName(names_[static_cast<size_t>(preferred_)]));
      return {};
    }
    if (failure.ok()) failure = opened.status();
  }
  return failure;
}

Result<int> DeviceSet::Use(const std::string& spec) {
  if (spec.empty() || spec == "auto") return preferred_;
  ONCILLA_ASSIGN(const size_t index, ResolveDevice(spec, visible_, notes_));
  MutexLock lock(&mutex_);
  return UseVisible(index);
}

Result<int> DeviceSet::InUse(const std::string& spec) const {
  if (spec.empty() || spec == "auto") return preferred_;
  ONCILLA_ASSIGN(const size_t index, ResolveDevice(spec, visible_, notes_));
  const std::span<const std::string> used = names();
  const auto found = std::find(used.begin(), used.end(), visible_[index].name);
  if (found != used.end()) return static_cast<int>(found - used.begin());
  std::string list;
  for (const std::string& name : used)
    list += StrCat(list.empty() ? "" : ", ", ShortDeviceName(name));
  return WithStage(
      NotFound("device '", visible_[index].short_name(), "' is not in use; in use: ", list),
      Stage::kDevice);
}

Result<int> DeviceSet::UseVisible(size_t index) {
  const ListedDevice& listed = visible_[index];
  if (closed_) return Error(Code::kFailedPrecondition, "the session is closed");
  const auto known = std::find(names_.begin(), names_.end(), listed.name);
  if (known != names_.end()) return static_cast<int>(known - names_.begin());
  OpenOptions open;
  open.threads = &threads_;
  open.plain = options_.device == "cpu:plain";
  open.cache_dir = runtime_.options().cache_dir;
  open.host_memory = runtime_.options().host_memory;
  open.shared = &runtime_.shared();
  auto device = listed.Open(open);
  if (!device.ok()) {
    return WithStage(WithDevice(In(device.status(), StrCat("opening ", listed.short_name(), " (",
                                                           listed.info.name, ")")),
                                listed.name),
                     Stage::kDevice);
  }
  if (options_.verify) *device = std::make_unique<CheckedDevice>(*std::move(device));
  ONCILLA_ASSIGN(const DeviceMemoryOptions options, OptionsFor(memory_options_, listed));
  ONCILLA_ASSIGN(DeviceMemoryPlan memory,
                 PlanDeviceMemory(options, listed.info, device->get(),
                                  StrCat("memory of '", listed.short_name(), "'")));
  if (listed.part_limit_bytes > 0 && listed.part_limit_bytes < memory.limit_bytes) {
    memory.limit_bytes = listed.part_limit_bytes;
    memory.limit_source = "of the logical device";
    memory.commit_bytes = std::min(memory.commit_bytes, memory.limit_bytes);
  }
  auto budget = std::make_shared<MemoryBudget>(memory.limit_bytes, runtime_.DeviceTotal(listed));
  runtime_.log().Info(listed.short_name(), ": memory limit ", HumanBytes(memory.limit_bytes), " (",
                      memory.limit_source, ")");
  devices_.push_back(*std::move(device));
  pointers_.push_back(devices_.back().get());
  names_.push_back(listed.name);
  budgets_.push_back(std::move(budget));
  plans_.push_back(std::move(memory));
  const size_t place = devices_.size() - 1;
  PoolOptions arenas = PoolOptionsFor(place, "arenas", owner_);
  arenas.reserve_bytes = plans_[place].commit_bytes;  // the session's for as long as it lives
  pools_.push_back(std::make_unique<Pool>(devices_[place].get(), &ledger_, std::move(arenas)));
  if (plans_[place].commit_bytes > 0) {
    const Status taken = pools_[place]->Commit(plans_[place].commit_bytes).status();
    if (!taken.ok()) {
      pools_.pop_back(), plans_.pop_back(), budgets_.pop_back();
      names_.pop_back(), pointers_.pop_back(), devices_.pop_back();
      return WithStage(In(taken, StrCat("opening ", listed.short_name())), Stage::kDevice);
    }
  }
  links_.push_back(std::make_shared<DeviceLink>(devices_.back().get(), pools_.back().get(),
                                                listed.name, owner_,
                                                std::chrono::milliseconds(options_.watchdog_ms)));
  lost_.emplace_back();
  used_ = devices_.size();
  if (options_.log_device_placement) {
    // TensorFlow's words: what was asked for is told whatever the level of the log.
    if (used_ == 1) runtime_.log().Warning("Device mapping:");
    runtime_.log().Warning(listed.name, " -> ", listed.info.name, ", ", listed.info.id);
  }
  return static_cast<int>(used_) - 1;
}

size_t DeviceSet::size() const {
  MutexLock lock(&mutex_);
  return used_;
}

std::span<Device* const> DeviceSet::devices() const { return {pointers_.data(), size()}; }

std::span<const std::string> DeviceSet::names() const { return {names_.data(), size()}; }

std::vector<std::shared_ptr<DeviceLink>> DeviceSet::links() const {
  MutexLock lock(&mutex_);
  return links_;
}

void DeviceSet::CloseBy(Deadline deadline) {
  for (Device* device : devices()) device->CloseBy(deadline);
}

void DeviceSet::Close(const std::function<void(size_t, int64_t)>& count) {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  // One after the other, without a list: memory may be what there is not.
  for (size_t d = 0;; ++d) {
    std::shared_ptr<DeviceLink> link;
    {
      MutexLock lock(&mutex_);
      if (d >= links_.size()) break;
      link = links_[d];
    }
    link->Close();
  }
  for (size_t d = 0; d < size(); ++d) {
    count(d, pools_[d]->Close());
    devices_[d]->Close();
  }
}

PoolOptions DeviceSet::PoolOptionsFor(size_t device, std::string name, OwnerId owner) const {
  PoolOptions options;
  options.name = std::move(name);
  options.device_name = names_[device];
  options.budget = budgets_[device];
  options.exact = true;
  options.reserve_bytes = plans_[device].reserve_bytes;
  options.on_shortage = [this](const PoolShortage& shortage) { NoteShortage(shortage); };
  options.owner = owner;
  return options;
}

std::unique_ptr<Pool> DeviceSet::MakePool(size_t device, std::string name, OwnerId owner) const {
  if (plans_[device].commit_bytes > 0) return pools_[device]->Share();
  PoolOptions options = PoolOptionsFor(device, std::move(name), owner);
  return std::make_unique<Pool>(devices_[device].get(), &ledger_, std::move(options));
}

void DeviceSet::NoteShortage(const PoolShortage& shortage) const {
  int number = 0;
  {
    MutexLock lock(&shortage_mutex_);
    shortage_ = shortage;
    number = shortages_++;
  }
  if (options_.memory_dump.empty()) return;
  constexpr int kMostFiles = 100;  // a program that goes on trying must not fill the disk
  if (number >= kMostFiles) return;
  std::string device = ShortDeviceName(shortage.device_name);
  std::replace(device.begin(), device.end(), ':', '_');
  const std::string path = StrCat(options_.memory_dump, ".", device, ".", number);
  for (const auto& [ending, text] :
       {std::pair(".txt", &shortage.text), std::pair(".json", &shortage.json)}) {
    const Status written = WriteFile(path + ending, *text);
    if (!written.ok()) runtime_.log().Warning("memory dump: ", Message(written));
  }
}

std::optional<PoolShortage> DeviceSet::last_shortage() const {
  MutexLock lock(&shortage_mutex_);
  return shortage_;
}

void DeviceSet::MarkLost(size_t device, const Status& why) {
  MutexLock lock(&mutex_);
  if (!lost_[device].ok()) return;
  any_lost_ = true;
  lost_[device] =
      WithStage(WithDevice(Error(Code::kUnavailable, names_[device], " is lost: ", Message(why)),
                           names_[device]),
                Stage::kDevice);
}

Status DeviceSet::CheckAlive(size_t device) const {
  MutexLock lock(&mutex_);
  return lost_[device];
}

}  // namespace oncilla
