// Discovery: every backend is asked once what it finds.
#include "engine/session/runtime.h"

#include <cstdlib>
#include <cstring>

#include "engine/api/backends.h"
#include "engine/placement/device_name.h"

namespace oncilla {
namespace {

constexpr char kLocalPrefix[] = "/job:localhost/replica:0/task:0/device:";

std::string List(const std::vector<ListedDevice>& devices) {
  std::string out;
  for (const ListedDevice& d : devices) {
    if (!d.name.empty())
      out += (out.empty() ? "" : ", ") + d.short_name() + " (" + d.info.name + ")";
  }
  return out;
}

}  // namespace

RuntimeOptions RuntimeOptionsFromEnvironment() {
  RuntimeOptions options;
  const char* cpus = std::getenv("ONCILLA_OPENCL_CPU_DEVICES");
  options.opencl_cpu_devices = cpus != nullptr && std::strcmp(cpus, "1") == 0;
  if (const char* dir = std::getenv("ONCILLA_CACHE_DIR")) options.cache_dir = dir;
  return options;
}

std::string ListedDevice::short_name() const {
  const size_t at = name.rfind("device:");
  return at == std::string::npos ? name : name.substr(at + 7);
}

std::shared_ptr<Runtime> Runtime::Create(RuntimeOptions options) {
  return std::shared_ptr<Runtime>(new Runtime(std::move(options)));
}

Runtime::Runtime(RuntimeOptions options)
    : options_(std::move(options)), ops_(OpSet::Builtin()), threads_(options_.threads) {
  const DiscoverOptions discover{options_.opencl_cpu_devices};
  int cpus = 0, gpus = 0;
  std::vector<ListedDevice> unused;
  for (const Backend* backend : LinkedBackends()) {
    for (DeviceInfo& info : backend->discover(discover, notes_)) {
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
      int& count = device.info.type == "CPU" ? cpus : gpus;
      device.name = StrCat(kLocalPrefix, device.info.type, ":", count++);
      devices_.push_back(std::move(device));
    }
  }
  for (ListedDevice& device : unused) devices_.push_back(std::move(device));
  for (const ListedDevice& d : devices_) {
    log().Info("found ", d.name.empty() ? d.info.name : d.short_name() + " " + d.info.name,
               d.note.empty() ? "" : ": ", d.note);
  }
  for (const std::string& note : notes_) log().Info(note);
}

Result<size_t> Runtime::Resolve(const std::string& spec) const {
  auto missing = [&](const std::string& why) {
    std::string notes;
    for (const std::string& note : notes_) notes += "; " + note;
    return WithStage(
        NotFound("there is no device '", spec, "'", why, "; available: ", List(devices_), notes),
        Stage::kDevice);
  };
  if (spec == "auto" || spec.empty()) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (!devices_[i].name.empty() && devices_[i].info.type == "GPU") return i;
    }
    return 0;
  }
  std::string text = spec == "cpu:plain" || spec == "cpu" ? "CPU:0" : spec;
  if (text == "gpu" || text == "GPU") text = "GPU:0";
  auto wanted = DeviceName::Parse(text);
  if (!wanted.ok()) return missing(StrCat(" (", Message(wanted.status()), ")"));
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].name.empty()) continue;
    auto name = DeviceName::Parse(devices_[i].name);
    if (name.ok() && IsCompleteSpecification(*wanted, *name)) return i;
  }
  return missing("");
}

}  // namespace oncilla
