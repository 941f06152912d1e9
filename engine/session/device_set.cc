// Listing devices, opening them on demand, and recording which are lost.
#include "engine/session/device_set.h"

#include <algorithm>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/device/checked_device.h"
#include "engine/device/tunable.h"
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
  // If the CPU is named, no driver is loaded, unless the fallback policy may use other devices.
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
  in_use_.reserve(visible_.size());
  pointers_.reserve(visible_.size());
  names_.reserve(visible_.size());
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

std::vector<std::string> DeviceSet::GpusByPolicy() const {
  struct Gpu {
    std::string name;
    int sessions;
    int64_t free_bytes;
  };
  std::vector<Gpu> gpus;
  for (const ListedDevice& listed : visible_) {
    const auto name = DeviceName::Parse(listed.name);
    if (!name.ok() || name->type != "GPU") continue;
    gpus.push_back({listed.name, runtime_.Preferring(listed),
                    runtime_.DeviceTotal(listed)->available_bytes()});
  }
  if (options_.device_policy == DevicePolicy::kRoundRobin && !gpus.empty()) {
    const size_t turn = runtime_.NextTurn() % gpus.size();
    std::rotate(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(turn), gpus.end());
  } else {
    std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) {
      if (a.sessions != b.sessions) return a.sessions < b.sessions;
      return a.free_bytes > b.free_bytes;
    });
  }
  std::vector<std::string> names;
  for (Gpu& gpu : gpus) names.push_back(std::move(gpu.name));
  return names;
}

// Opens the requested device. If it does not exist or cannot be opened, the fallback's next one is
// tried, and for "auto" any other device.
Status DeviceSet::OpenPreferred() {
  const bool any = options_.device.empty() || options_.device == "auto";
  std::vector<std::string> specs = {options_.device};
  if (options_.device_policy != DevicePolicy::kFirst &&
      (any || options_.device == "gpu" || options_.device == "GPU")) {
    specs = GpusByPolicy();
    specs.push_back(options_.device);
  }
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
      prefers_ = runtime_.Prefer(visible_[*index]);
      if (failure.ok() && any && preferred_ == 0) TellOnlyCpu();
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

void DeviceSet::TellOnlyCpu() const {
  // A user who hid the GPUs needs no warning.
  if (!knows_gpus_ || options_.device_count.count("GPU") != 0) return;
  if (!options_.visible_devices.empty() || runtime_.options().visible_devices) return;
  std::string why = notes_.empty() ? "" : notes_[0];
  if (notes_.size() > 1) {
    why += StrCat("; and ", notes_.size() - 1, " more reasons, which 'oncilla devices' lists");
  }
  runtime_.WarnOfNoGpu(why);
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

Result<DeviceSet::Opened> DeviceSet::OpenListed(const ListedDevice& listed) const {
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
  Opened used;
  used.device = *std::move(device);
  if (auto* tunable = dynamic_cast<Tunable*>(used.device.get())) {
    // The runtime's log outlives every device, so the device may keep a reference to it.
    const Status status = tunable->UseTuning(
        options_.tuning, [log = &runtime_.log()](const std::string& text) { log->Warning(text); });
    if (!status.ok()) return WithDevice(In(status, "the option 'tuning'"), listed.name);
  }
  if (options_.verify) used.device = std::make_unique<CheckedDevice>(std::move(used.device));
  ONCILLA_ASSIGN(const DeviceMemoryOptions options, OptionsFor(memory_options_, listed));
  ONCILLA_ASSIGN(used.plan, PlanDeviceMemory(options, listed.info, used.device.get(),
                                             StrCat("memory of '", listed.short_name(), "'")));
  if (listed.part_limit_bytes > 0 && listed.part_limit_bytes < used.plan.limit_bytes) {
    used.plan.limit_bytes = listed.part_limit_bytes;
    used.plan.limit_source = "of the logical device";
    used.plan.commit_bytes = std::min(used.plan.commit_bytes, used.plan.limit_bytes);
  }
  used.budget = std::make_shared<MemoryBudget>(used.plan.limit_bytes, runtime_.DeviceTotal(listed));
  return used;
}

Result<int> DeviceSet::UseVisible(size_t index) {
  const ListedDevice& listed = visible_[index];
  if (closed_) return Error(Code::kFailedPrecondition, "the session is closed");
  const auto known = std::find(names_.begin(), names_.end(), listed.name);
  if (known != names_.end()) return static_cast<int>(known - names_.begin());
  ONCILLA_ASSIGN(Opened opened, OpenListed(listed));
  runtime_.log().Info(listed.short_name(), ": memory limit ", HumanBytes(opened.plan.limit_bytes),
                      " (", opened.plan.limit_source, ")");
  in_use_.push_back(std::move(opened));
  pointers_.push_back(in_use_.back().device.get());
  names_.push_back(listed.name);
  Opened& used = in_use_.back();
  const size_t place = in_use_.size() - 1;
  PoolOptions arenas = PoolOptionsFor(place, "arenas", owner_);
  arenas.reserve_bytes = used.plan.commit_bytes;  // the session holds this for its whole life
  used.pool = std::make_unique<Pool>(used.device.get(), &ledger_, std::move(arenas));
  if (used.plan.commit_bytes > 0) {
    const Status taken = used.pool->Commit(used.plan.commit_bytes).status();
    if (!taken.ok()) {
      names_.pop_back(), pointers_.pop_back(), in_use_.pop_back();
      return WithStage(In(taken, StrCat("opening ", listed.short_name())), Stage::kDevice);
    }
  }
  used.link = std::make_shared<DeviceLink>(used.device.get(), used.pool.get(), listed.name, owner_,
                                           std::chrono::milliseconds(options_.watchdog_ms));
  used_ = in_use_.size();
  if (options_.log_device_placement) {
    // TensorFlow's wording. It was asked for explicitly, so it is written at any log level.
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
  std::vector<std::shared_ptr<DeviceLink>> links;
  for (size_t d = 0, count = size(); d < count; ++d) links.push_back(in_use_[d].link);
  return links;
}

void DeviceSet::CloseBy(Deadline deadline) {
  for (Device* device : devices()) device->CloseBy(deadline);
}

void DeviceSet::Close(const std::function<void(size_t, int64_t)>& count) {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    prefers_ = nullptr;
  }
  for (size_t d = 0; d < size(); ++d) in_use_[d].link->Close();
  for (size_t d = 0; d < size(); ++d) {
    count(d, in_use_[d].pool->Close());
    in_use_[d].device->Close();
  }
}

PoolOptions DeviceSet::PoolOptionsFor(size_t device, std::string name, OwnerId owner) const {
  PoolOptions options;
  options.name = std::move(name);
  options.device_name = names_[device];
  options.budget = in_use_[device].budget;
  const DeviceMemoryPlan& plan = in_use_[device].plan;
  options.exact = plan.growth_first_bytes == 0;
  if (!options.exact) options.first_region_bytes = plan.growth_first_bytes;
  options.growth_factor = plan.growth_factor;
  options.growth_cap_bytes = plan.growth_cap_bytes;
  options.reserve_bytes = in_use_[device].plan.reserve_bytes;
  options.on_shortage = [this](const PoolShortage& shortage) { NoteShortage(shortage); };
  options.owner = owner;
  return options;
}

std::unique_ptr<Pool> DeviceSet::MakePool(size_t device, std::string name, OwnerId owner) const {
  const Opened& used = in_use_[device];
  if (used.plan.commit_bytes > 0) return used.pool->Share();
  PoolOptions options = PoolOptionsFor(device, std::move(name), owner);
  return std::make_unique<Pool>(used.device.get(), &ledger_, std::move(options));
}

void DeviceSet::NoteShortage(const PoolShortage& shortage) const {
  int number = 0;
  {
    MutexLock lock(&shortage_mutex_);
    shortage_ = shortage;
    number = shortages_++;
  }
  if (options_.memory_dump.empty()) return;
  constexpr int kMostFiles = 100;  // a program that keeps retrying must not fill the disk
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
  Status& lost = in_use_[device].lost;
  if (!lost.ok()) return;
  any_lost_ = true;
  lost = WithStage(WithDevice(Error(Code::kUnavailable, names_[device], " is lost: ", Message(why)),
                              names_[device]),
                   Stage::kDevice);
}

Status DeviceSet::CheckAlive(size_t device) const {
  MutexLock lock(&mutex_);
  return in_use_[device].lost;
}

Result<RunValue> DeviceSet::ToDevice(const Tensor& tensor, std::string_view device) {
  ONCILLA_ASSIGN(const int used, InUse(std::string(device)));
  const auto d = static_cast<size_t>(used);
  if (devices()[d]->info().host_memory) {
    // Strings and lists are immutable, so sharing them is as good as a copy.
    const bool numbers = !tensor.is_list() && tensor.desc().dtype != DType::kString;
    return RunValue(numbers ? Tensor::Copy(tensor.desc(), tensor.bytes()) : tensor);
  }
  ONCILLA_TRY(CheckAlive(d));
  auto written = links()[d]->Write(tensor);
  if (written.status().code() == Code::kUnavailable) MarkLost(d, written.status());
  if (!written.ok()) return written.status();
  return RunValue(*std::move(written));
}

}  // namespace oncilla
