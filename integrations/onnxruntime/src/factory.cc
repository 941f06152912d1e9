// Lists devices, makes providers, and exports the library's functions.
#include "integrations/onnxruntime/src/factory.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#define ONCILLA_ORT_EXPORT extern "C" __attribute__((visibility("default")))

namespace oncilla::ort {
namespace {

constexpr const char* kVendor = "Oncilla";
// The metadata entry that names the engine's device of an OrtEpDevice.
constexpr const char* kDeviceKey = "oncilla_device";

std::mutex reports_mutex;
// All providers of the process, in the order in which they were made.
std::vector<const Ep*>& LiveEps() {
  static auto* const live = new std::vector<const Ep*>();  // outlives every session
  return *live;
}

// Shortens "/job:localhost/replica:0/task:0/device:GPU:0" to "gpu:0".
std::string ShortName(const std::string& name) {
  const size_t at = name.rfind("device:");
  std::string text = at == std::string::npos ? name : name.substr(at + 7);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// PCI ids of vendors, by a word in the name that the driver gives.
uint32_t VendorId(const std::string& vendor) {
  constexpr std::pair<const char*, uint32_t> kVendors[] = {
      {"NVIDIA", 0x10DE}, {"Advanced Micro Devices", 0x1002},
      {"AMD", 0x1002},    {"Intel", 0x8086},
      {"ARM", 0x13B5},    {"QUALCOMM", 0x5143},
      {"Apple", 0x106B}};
  for (const auto& [word, id] : kVendors) {
    if (vendor.find(word) != std::string::npos) return id;
  }
  return 0;
}

class Pairs {
 public:
  Pairs() { Ort().CreateKeyValuePairs(&pairs_); }
  ~Pairs() { Ort().ReleaseKeyValuePairs(pairs_); }
  Pairs(const Pairs&) = delete;
  void Add(const char* key, const std::string& value) {
    Ort().AddKeyValuePair(pairs_, key, value.c_str());
  }
  const OrtKeyValuePairs* get() const { return pairs_; }

 private:
  OrtKeyValuePairs* pairs_ = nullptr;
};

Runtime MakeRuntime(std::function<void(oncilla_log_level, const std::string&)> log) {
  RuntimeOptions options;
  options.opencl_cpu_devices = true;
  options.log = std::move(log);
  return Value(Runtime::Create(options));
}

}  // namespace

Factory* Factory::Create(const OrtLogger* logger) { return new Factory(logger); }

Factory::Factory(const OrtLogger* logger)
    : OrtEpFactory{},
      log_(std::make_shared<LogTarget>()),
      runtime_(MakeRuntime([to = log_](oncilla_log_level level, const std::string& message) {
        const std::lock_guard<std::mutex> lock(to->mutex);
        Log(to->logger, level, "oncilla: " + message);
      })) {
  {
    const std::lock_guard<std::mutex> lock(log_->mutex);
    log_->logger = logger;
  }
  version = kStructVersion;
  GetName = [](const OrtEpFactory*) { return kEpName; };
  GetVendor = [](const OrtEpFactory*) { return kVendor; };
  GetVendorId = [](const OrtEpFactory*) -> uint32_t { return 0; };
  GetVersion = [](const OrtEpFactory*) { return oncilla_version(); };
  GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                           size_t count, OrtEpDevice** ep_devices, size_t room, size_t* written) {
    return Guard([&] {
      static_cast<Factory*>(self)->ListDevices(devices, count, ep_devices, room, written);
    });
  };
  CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*,
                const OrtKeyValuePairs* const* metadata, size_t count,
                const OrtSessionOptions* options, const OrtLogger* log, OrtEp** ep) {
    *ep = nullptr;
    return Guard([&] { *ep = static_cast<Factory*>(self)->Open(metadata, count, options, log); });
  };
  ReleaseEp = [](OrtEpFactory* self, OrtEp* ep) {
    static_cast<Factory*>(self)->Close(static_cast<Ep*>(ep));
  };
  // Inputs and outputs are in host memory, and there are no streams.
  ValidateCompiledModel = [](OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char*,
                             int* compatibility) -> OrtStatus* {
    *compatibility = 0;  // not applicable: nothing compiled is kept in model files
    return nullptr;
  };
  CreateAllocator = [](OrtEpFactory*, const void*, const OrtKeyValuePairs*,
                       void** allocator) -> OrtStatus* {
    *allocator = nullptr;
    return nullptr;
  };
  ReleaseAllocator = [](OrtEpFactory*, void*) {};
  CreateDataTransfer = [](OrtEpFactory*, void** transfer) -> OrtStatus* {
    *transfer = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) { return false; };
  CreateSyncStream = [](OrtEpFactory*, const void*, const OrtKeyValuePairs*,
                        void** stream) -> OrtStatus* {
    *stream = nullptr;
    return nullptr;
  };
}

Factory::~Factory() {
  for (OrtHardwareDevice* device : made_) Ort().ReleaseHardwareDevice(device);
}

void Factory::Release() {
  {
    const std::lock_guard<std::mutex> lock(log_->mutex);
    log_->logger = nullptr;
  }
  Drop();
}

void Factory::Drop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--held_ > 0) return;
  }
  delete this;
}

// GPUs come first, so that a program that takes all devices of the list uses a GPU; then the
// engine's own CPU device, then OpenCL on the processor.
void Factory::ListDevices(const OrtHardwareDevice* const* devices, size_t count,
                          OrtEpDevice** ep_devices, size_t room, size_t* written) {
  *written = 0;
  std::vector<DeviceInfo> ordered;
  const auto rank = [](const DeviceInfo& info) {
    return !info.on_processor ? 0 : info.backend == "cpu" ? 1 : 2;
  };
  for (const DeviceInfo& info : runtime_.Devices()) {
    if (!info.name.empty()) ordered.push_back(info);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const DeviceInfo& a, const DeviceInfo& b) { return rank(a) < rank(b); });
  std::set<const OrtHardwareDevice*> used;
  for (const DeviceInfo& info : ordered) {
    if (*written == room) break;
    ep_devices[*written] = MakeDevice(info, devices, count, used);
    ++*written;
  }
}

OrtEpDevice* Factory::MakeDevice(const DeviceInfo& info, const OrtHardwareDevice* const* devices,
                                 size_t count, std::set<const OrtHardwareDevice*>& used) {
  const bool gpu = info.backend != "cpu" && !info.on_processor;
  const uint32_t vendor = VendorId(info.vendor);
  const OrtHardwareDevice* hardware = nullptr;
  for (size_t i = 0; i < count && hardware == nullptr; ++i) {
    if (Ort().HardwareDevice_Type(devices[i]) != (gpu ? kOrtGpu : kOrtCpu)) continue;
    if (gpu && (Ort().HardwareDevice_VendorId(devices[i]) != vendor || used.contains(devices[i]))) {
      continue;
    }
    hardware = devices[i];
  }
  if (hardware == nullptr) {
    // ONNX Runtime finds the GPUs that the kernel lists. A device that only a driver knows is
    // described here.
    Pairs metadata;
    metadata.Add("Description", info.driver_name);
    OrtHardwareDevice* made = nullptr;
    Check(Ort().CreateHardwareDevice(gpu ? kOrtGpu : kOrtCpu, vendor,
                                     static_cast<uint32_t>(made_.size()), info.vendor.c_str(),
                                     metadata.get(), &made));
    made_.push_back(made);
    hardware = made;
  }
  used.insert(hardware);
  Pairs metadata;
  metadata.Add(kDeviceKey, ShortName(info.name));
  metadata.Add("name", info.driver_name);
  metadata.Add("vendor", info.vendor);
  metadata.Add("driver_version", info.driver_version);
  metadata.Add("backend", info.backend);
  metadata.Add("id", info.id);
  metadata.Add("memory_bytes", std::to_string(info.memory_bytes));
  OrtEpDevice* device = nullptr;
  Check(Ort().CreateEpDevice(this, hardware, metadata.get(), nullptr, &device));
  return device;
}

OrtEp* Factory::Open(const OrtKeyValuePairs* const* metadata, size_t count,
                     const OrtSessionOptions* options, const OrtLogger* logger) {
  const char* device =
      count == 0 || metadata[0] == nullptr ? nullptr : Ort().GetKeyValue(metadata[0], kDeviceKey);
  if (device == nullptr) {
    throw Failure(kOrtInvalidArgument, "oncilla: the session names no device of this provider");
  }
  if (count > 1) {
    Log(logger, kOrtWarning,
        "oncilla: of " + std::to_string(count) + " devices the first is used, " +
            std::string(device));
  }
  auto ep = std::make_unique<Ep>(*this, runtime_, device, ReadOptions(options, kEpName), logger);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++held_;
  const std::lock_guard<std::mutex> reports(reports_mutex);
  LiveEps().push_back(ep.get());
  return ep.release();
}

void Factory::Close(Ep* ep) {
  {
    const std::lock_guard<std::mutex> lock(reports_mutex);
    auto& live = LiveEps();
    live.erase(std::remove(live.begin(), live.end(), ep), live.end());
  }
  delete ep;
  Drop();
}

std::string Factory::ReportAll(bool json) {
  const std::lock_guard<std::mutex> lock(reports_mutex);
  std::string text = json ? "[" : "";
  for (const Ep* ep : LiveEps()) {
    if (json && text.size() > 1) text += ", ";
    text += ep->Report(json);
  }
  return json ? text + "]" : text;
}

}  // namespace oncilla::ort

using namespace oncilla::ort;  // NOLINT: the border to ONNX Runtime

ONCILLA_ORT_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base,
                                                const OrtLogger* logger, OrtEpFactory** factories,
                                                size_t room, size_t* written) {
  *written = 0;
  if (OrtStatus* failed = Connect(base)) return failed;
  return Guard([&] {
    if (room == 0) throw Failure(kOrtInvalidArgument, "oncilla: no room for a factory");
    // Sessions may outlive the registration of the library, and drivers have threads, so the
    // library's code stays loaded until the process ends.
    Dl_info here;
    if (dladdr(reinterpret_cast<const void*>(&CreateEpFactories), &here) != 0) {
      (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
    factories[0] = Factory::Create(logger);
    *written = 1;
  });
}

ONCILLA_ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  if (factory != nullptr) static_cast<Factory*>(factory)->Release();
  return nullptr;
}

// The report of all open sessions: the nodes that each has taken, those that it left with the
// reasons, and its memory. Writes as much of it to `text` as `size` allows, with a terminating
// zero, and returns the size of the whole report.
ONCILLA_ORT_EXPORT size_t oncilla_ort_report(int json, char* text, size_t size) {
  try {
    const std::string all = Factory::ReportAll(json != 0);
    if (size > 0) {
      const size_t fits = std::min(all.size(), size - 1);
      std::memcpy(text, all.data(), fits);
      text[fits] = 0;
    }
    return all.size() + 1;
  } catch (...) {
    return 0;
  }
}
