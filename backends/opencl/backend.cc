// The backend's row for the engine: which devices are offered, and how one is opened.
//
// Devices of type CPU are offered only on request, so that a machine without a GPU runs on the
// threaded CPU backend by default.
#include "backends/opencl/backend.h"

#include <algorithm>

#include "backends/opencl/device.h"

namespace oncilla::opencl {
namespace {

// Wide enough for any vector type of OpenCL C.
constexpr int64_t kLeastAlignment = 128;

bool Offered(const FoundDevice& device, const DiscoverOptions& options,
             std::vector<std::string>* notes) {
  const auto note = [&](const std::string& text) {
    if (notes != nullptr) {
      notes->push_back(StrCat("OpenCL device '", device.facts.name, "' of platform '",
                              device.facts.platform, "': ", text));
    }
    return false;
  };
  if (!device.problem.empty()) return note(StrCat("cannot be used: ", device.problem));
  if (device.facts.type == DeviceType::kCpu && !options.opencl_cpu_devices) {
    return note("is a CPU and used only when OpenCL's CPU devices are asked for");
  }
  return true;
}

// All devices that were found, each with its info. Ordinals count offered and other devices alike,
// so that an ordinal means the same device with any options.
std::vector<std::pair<FoundDevice, DeviceInfo>> FindAll(std::vector<std::string>* notes) {
  Discovery discovery = Discover(LibraryOptions::FromEnvironment());
  if (notes != nullptr) {
    for (const std::string& note : discovery.notes) notes->push_back(StrCat("OpenCL: ", note));
    if (discovery.devices.empty()) {
      notes->push_back(StrCat("no OpenCL device: ", discovery.reason));
    }
  }
  std::vector<std::pair<FoundDevice, DeviceInfo>> all;
  for (FoundDevice& device : discovery.devices) {
    DeviceInfo info = InfoOf(device.facts, static_cast<int>(all.size()));
    all.emplace_back(std::move(device), std::move(info));
  }
  return all;
}

std::vector<DeviceInfo> DiscoverDevices(const DiscoverOptions& options,
                                        std::vector<std::string>& notes) {
  std::vector<DeviceInfo> infos;
  for (auto& [device, info] : FindAll(&notes)) {
    if (Offered(device, options, &notes)) infos.push_back(std::move(info));
  }
  return infos;
}

Result<std::unique_ptr<Device>> OpenDevice(const DeviceInfo& info, const OpenOptions& options) {
  ONCILLA_ASSIGN(auto device, OpenClDevice(info, options));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

Result<std::unique_ptr<ClDevice>> OpenClDevice(const DeviceInfo& info, const OpenOptions& options) {
  ONCILLA_ASSIGN(const ClDeviceOptions own, DeviceOptionsOf(options));
  for (auto& [found, now] : FindAll(nullptr)) {
    if (now.ordinal != info.ordinal || now.id != info.id || now.name != info.name) continue;
    return ClDevice::Open(found, info, own);
  }
  return WithStage(NotFound("OpenCL device '", info.name, "' (", info.id, ") is no longer there"),
                   Stage::kDevice);
}

Result<ClDeviceOptions> DeviceOptionsOf(const OpenOptions& options) {
  ClDeviceOptions own;
  own.shared = options.shared;
  own.cache_folder = options.cache_dir.empty() ? UserCacheFolder() : options.cache_dir;
  ONCILLA_ASSIGN(own.shape, ForcedShapeFromEnvironment());
  ONCILLA_ASSIGN(own.winograd, WinogradFromEnvironment());
  ONCILLA_ASSIGN(own.matrix_unit, ForcedMatrixFromEnvironment());
  ONCILLA_ASSIGN(own.sub_buffers, ForcedViewsFromEnvironment());
  return own;
}

DeviceInfo InfoOf(const DeviceFacts& f, int ordinal) {
  DeviceInfo info;
  info.backend = "opencl";
  info.type = "GPU";
  info.name = f.name;
  info.vendor = f.vendor;
  info.driver = f.driver;
  info.platform = f.platform;
  info.ordinal = ordinal;
  info.id = f.hardware_id.empty() ? StrCat("opencl:", ordinal) : f.hardware_id;
  info.memory_bytes = f.global_memory;
  info.max_allocation_bytes = f.max_allocation;
  info.alignment_bytes = std::max(f.base_alignment, kLeastAlignment);
  info.compute_units = static_cast<int>(std::min<int64_t>(f.compute_units, 1 << 30));
  info.is_opencl_cpu = f.type == DeviceType::kCpu;
  return info;
}

const Backend kBackend = {"opencl", &DiscoverDevices, &OpenDevice};

}  // namespace oncilla::opencl
