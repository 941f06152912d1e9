// Discovery: every backend is asked once what it finds, the CPU's at once, others when need be.
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
  // The first backend is the CPU's, which finds one device on every machine.
  cpu_.backend = LinkedBackends().front();
  std::vector<std::string> notes;
  cpu_.info = cpu_.backend->discover({options_.opencl_cpu_devices}, notes).front();
  cpu_.name = StrCat(kLocalPrefix, "CPU:0");
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
  int gpus = 0;
  std::vector<ListedDevice> unused;
  for (const Backend* backend : LinkedBackends().subspan(1)) {
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
      device.name = StrCat(kLocalPrefix, device.info.type, ":", gpus++);
      devices.push_back(std::move(device));
    }
  }
  for (ListedDevice& device : unused) devices.push_back(std::move(device));
  for (size_t i = 1; i < devices.size(); ++i) Tell(devices[i]);
  for (const std::string& note : found_.notes) log().Info(note);
}

Result<size_t> Runtime::Resolve(const std::string& spec) const {
  auto missing = [&](const std::string& why) {
    std::string notes;
    for (const std::string& note : this->notes()) notes += "; " + note;
    return WithStage(
        NotFound("there is no device '", spec, "'", why, "; available: ", List(devices()), notes),
        Stage::kDevice);
  };
  if (spec == "auto" || spec.empty()) {
    for (size_t i = 0; i < devices().size(); ++i) {
      if (!devices()[i].name.empty() && devices()[i].info.type == "GPU") return i;
    }
    return 0;
  }
  std::string text = spec == "cpu:plain" || spec == "cpu" ? "CPU:0" : spec;
  if (text == "gpu" || text == "GPU") text = "GPU:0";
  auto wanted = DeviceName::Parse(text);
  if (!wanted.ok()) return missing(StrCat(" (", Message(wanted.status()), ")"));
  auto is = [&](const ListedDevice& device) {
    if (device.name.empty()) return false;
    auto name = DeviceName::Parse(device.name);
    return name.ok() && IsCompleteSpecification(*wanted, *name);
  };
  if (is(cpu_)) return 0;
  for (size_t i = 0; i < devices().size(); ++i) {
    if (is(devices()[i])) return i;
  }
  return missing("");
}

}  // namespace oncilla
