// Discovery: every backend is asked once for its devices, the CPU's immediately, the others when
// needed.
#include "engine/session/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/device/linked_backends.h"
#include "engine/memory/pool.h"
#include "engine/session/device_memory.h"

namespace oncilla {
namespace {

std::vector<std::string> Entries(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    if (!entry.empty()) out.emplace_back(entry);
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
  return out;
}

// Identifies a physical device, even if sessions divide or renumber it.
std::string PhysicalName(const ListedDevice& device) {
  return StrCat(device.info.backend, ' ', device.info.id);
}

}  // namespace

RuntimeOptions RuntimeOptionsFromEnvironment() {
  RuntimeOptions options;
  const char* cpus = std::getenv("ONCILLA_OPENCL_CPU_DEVICES");
  options.opencl_cpu_devices = cpus != nullptr && std::strcmp(cpus, "1") == 0;
  if (const char* dir = std::getenv("ONCILLA_CACHE_DIR")) options.cache_dir = dir;
  if (const char* seen = std::getenv("ONCILLA_VISIBLE_DEVICES")) {
    options.visible_devices = Entries(seen);
  }
  return options;
}

std::shared_ptr<Runtime> Runtime::Create(RuntimeOptions options) {
  return std::shared_ptr<Runtime>(new Runtime(std::move(options)));
}

Runtime::Runtime(RuntimeOptions options)
    : process_(getpid()),
      options_(std::move(options)),
      ops_(OpSet::Builtin()),
      threads_(options_.threads) {
  // The first backend is the CPU's, which finds exactly one device on every machine.
  cpu_.backend = LinkedBackends().front();
  std::vector<std::string> notes;
  cpu_.info = cpu_.backend->discover({options_.opencl_cpu_devices}, notes).front();
  cpu_.name = LocalDeviceName("CPU", 0);
  Tell(cpu_);
}

void Runtime::Tell(const ListedDevice& found) const {
  log().Info("found ", found.name.empty() ? "" : found.short_name() + " ", found.info.name,
             found.note.empty() ? "" : ": ", found.note);
}

const Runtime::Found& Runtime::All() const {
  std::call_once(discovered_, [this] { Discover(); });
  return found_;
}

void Runtime::Discover() const {
  const DiscoverOptions discover{options_.opencl_cpu_devices};
  std::vector<ListedDevice>& devices = found_.devices;
  devices.push_back(cpu_);
  const auto& visible = options_.visible_devices;
  if (visible.has_value() && visible->empty() && options_.host_devices.empty()) {
    found_.notes.push_back("visible devices: none, so no driver was looked for");
    log().Info(found_.notes.back());
    return;
  }
  int gpus = 0;
  if (!options_.host_devices.empty()) {
    for (const HostDevice& host : options_.host_devices) {
      ListedDevice& device = devices.emplace_back();
      device.name = LocalDeviceName(host.info.type, gpus++);
      device.note = "borrowed from the application";
      device.info = host.info;
      device.opener = host.open;
      Tell(device);
    }
    return;
  }
  std::vector<ListedDevice> unused;
  std::vector<const Backend*> backends = options_.more_backends;
  backends.insert(backends.end(), LinkedBackends().begin() + 1, LinkedBackends().end());
  for (const Backend* backend : backends) {
    for (DeviceInfo& info : backend->discover(discover, found_.notes)) {
      ListedDevice device;
      device.backend = backend;
      device.info = std::move(info);
      if (device.info.is_opencl_cpu && !options_.opencl_cpu_devices) {
        device.note =
            "an OpenCL device of type CPU; used only when asked for "
            "(--opencl-cpu-devices or ONCILLA_OPENCL_CPU_DEVICES=1)";
        unused.push_back(std::move(device));
        continue;
      }
      device.name = LocalDeviceName(device.info.type, gpus++);
      devices.push_back(std::move(device));
    }
  }
  for (ListedDevice& device : unused) devices.push_back(std::move(device));
  if (visible.has_value()) Hide(*visible);
  for (size_t i = 1; i < devices.size(); ++i) Tell(devices[i]);
  for (const std::string& note : found_.notes) log().Info(note);
}

void Runtime::Hide(std::vector<std::string> visible) const {
  constexpr std::string_view kWhy = "not among the visible devices";
  for (size_t i = 0; i < visible.size(); ++i) {
    // As with CUDA_VISIBLE_DEVICES: entries after an invalid one are ignored.
    auto one = SeeOnly(found_.devices, {&visible[i], 1}, kWhy);
    if (one.ok()) continue;
    // CUDA users write -1 to hide all devices.
    if (visible[i] != "-1") {
      log().Warning("ONCILLA_VISIBLE_DEVICES: ", Message(one.status()),
                    "; this entry and those after it are ignored");
    }
    found_.notes.emplace_back(Message(one.status()));
    visible.resize(i);
  }
  auto seen = SeeOnly(found_.devices, visible, kWhy);
  if (seen.ok()) found_.devices = *std::move(seen);
}

Result<std::shared_ptr<ThreadPool>> Runtime::NamedThreads(const std::string& name, int threads) {
  MutexLock lock(&mutex_);
  std::erase_if(named_pools_, [](const auto& entry) { return entry.second.pool.expired(); });
  if (const auto known = named_pools_.find(name); known != named_pools_.end()) {
    if (std::shared_ptr<ThreadPool> pool = known->second.pool.lock()) {
      if (threads > 0 && threads != known->second.threads) {
        return WithStage(InvalidArgument("the thread pool '", name, "' is in use with ",
                                         known->second.threads, " threads, not ", threads),
                         Stage::kOptions);
      }
      return pool;
    }
  }
  if (threads <= 0) threads = threads_.size();
  auto pool = std::make_shared<ThreadPool>(threads);
  named_pools_[name] = {threads, pool};
  return pool;
}

void Runtime::WarnOfNoGpu(const std::string& why) {
  std::call_once(warned_of_no_gpu_, [&] {
    log().Warning("no GPU was found, so the CPU runs everything", why.empty() ? "" : ": ", why);
  });
}

std::shared_ptr<MemoryBudget> Runtime::DeviceTotal(const ListedDevice& device) {
  int64_t limit = DefaultLimitBytes(device.info);
  const auto& given = options_.device_total_bytes;
  int most = 0;
  for (const auto& [key, bytes] : given) {
    const int closeness = Closeness(key, device);
    if (closeness <= most) continue;
    most = closeness;
    limit = bytes;
  }
  MutexLock lock(&mutex_);
  auto& total = totals_[PhysicalName(device)];
  if (total == nullptr) total = std::make_shared<MemoryBudget>(limit);
  return total;
}

std::shared_ptr<const void> Runtime::Prefer(const ListedDevice& device) {
  MutexLock lock(&mutex_);
  std::weak_ptr<const void>& slot = preferring_[PhysicalName(device)];
  std::shared_ptr<const void> token = slot.lock();
  if (token == nullptr) slot = token = std::make_shared<int>();
  return token;
}

int Runtime::Preferring(const ListedDevice& device) {
  MutexLock lock(&mutex_);
  return static_cast<int>(preferring_[PhysicalName(device)].use_count());
}

void Runtime::Note(std::weak_ptr<Session> session) {
  MutexLock lock(&mutex_);
  std::erase_if(sessions_, [](const auto& s) { return s.expired(); });
  sessions_.push_back(std::move(session));
}

std::vector<std::weak_ptr<Session>> Runtime::TakeSessions() {
  MutexLock lock(&mutex_);
  return std::exchange(sessions_, {});
}

Status Runtime::CheckProcess() const {
  if (getpid() == process_) return Status();
  return WithStage(
      Error(
          Code::kFailedPrecondition,
          "this process was forked from one that was using Oncilla, whose threads and devices ",
          "stayed there: fork before the first use, or start the child by exec (a runtime of its ",
          "own has the CPU, and other devices where no driver was used before the fork); leave it ",
          "by _exit"),
      Stage::kDevice);
}

Result<size_t> Runtime::Resolve(const std::string& spec) const {
  if (spec != "auto" && !spec.empty()) {
    if (auto cpu = ResolveDevice(spec, {&cpu_, 1}, {}); cpu.ok()) return 0;
  }
  return ResolveDevice(spec, devices(), notes());
}

}  // namespace oncilla
