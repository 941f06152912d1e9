// Discovery: lists OpenCL devices and what their drivers claim.
//
// Facts are claims; probe.h measures what a backend may rely on. Nothing is created here: no
// context, no queue. Finding no device is a normal result with a reason.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/runtime/cl_api.h"

namespace oncilla::opencl {

enum class DeviceType { kCpu, kGpu, kAccelerator, kOther };
std::string_view Name(DeviceType type);  // "cpu", "gpu", ...

// Memory is in bytes throughout.
struct DeviceFacts {
  std::string platform, platform_version;     // "Portable Computing Language"
  std::string name, vendor, driver, version;  // version: "OpenCL 3.0 ..."
  std::string hardware_id;  // "uuid:..." or "pci:0:1:0.0"; empty if the driver reports neither
  int version_major = 0, version_minor = 0;  // of the device, 1.2 -> 1, 2
  DeviceType type = DeviceType::kOther;
  bool available = false, compiler = false, little_endian = true;
  int64_t compute_units = 0, clock_mhz = 0, address_bits = 0;
  int64_t global_memory = 0, max_allocation = 0, base_alignment = 0;
  int64_t local_memory = 0;
  bool local_memory_is_real = false;  // false where the driver keeps it in global memory
  int64_t constant_memory = 0, parameter_bytes = 0;
  int64_t max_work_group = 0;
  std::array<int64_t, 3> max_work_items = {0, 0, 0};
  int64_t native_float_width = 0, preferred_float_width = 0;
  bool unified_memory = false;
  int64_t profiling_timer_ns = 0;
  bool claims_fp16 = false, claims_fp64 = false, claims_subgroups = false, claims_int64 = false;
  std::vector<std::string> extensions;

  bool HasExtension(std::string_view extension) const;
};

struct FoundDevice {
  Platform platform;
  cl_device_id id = nullptr;
  DeviceFacts facts;
  std::string problem;  // why it cannot be used; empty when it can
};

struct Discovery {
  std::vector<FoundDevice> devices;  // in the order of the platforms
  std::vector<std::string> notes;    // platforms without devices, and the like, for `devices`
  std::string reason;                // why there is no device; empty when there is one
};

// Thread-safe; runs driver code the first time (tens of milliseconds).
Discovery Discover(const LibraryOptions& options);

// The same for one device, of which the application has the handle.
FoundDevice Describe(const Platform& platform, cl_device_id device);

}  // namespace oncilla::opencl
