// Queries of platforms and devices. A query that fails leaves its fact at a modest default: real
// drivers lack some queries, and a missing answer must never make a device look better than it is.
#include "backends/opencl/runtime/discovery.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

namespace oncilla::opencl {
namespace {

// Reads text of any length through `query(size, data, &size)`, without the terminating zero.
template <class Query>
std::string Text(Query query) {
  size_t size = 0;
  if (query(0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (query(size, text.data(), &size) != CL_SUCCESS) return "";
  text.resize(std::min(text.find('\0'), text.size()));
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string Text(const Platform& p, cl_platform_info info) {
  return Text([&](size_t size, void* data, size_t* needed) {
    return p.api->GetPlatformInfo(p.id, info, size, data, needed);
  });
}

class Query {
 public:
  Query(const Api& api, cl_device_id device) : api_(api), device_(device) {}

  std::string Text(cl_device_info info) const {
    return opencl::Text([&](size_t size, void* data, size_t* needed) {
      return api_.GetDeviceInfo(device_, info, size, data, needed);
    });
  }
  // Values beyond INT64_MAX, which some drivers give for "no limit", become INT64_MAX.
  template <class T>
  int64_t Number(cl_device_info info) const {
    T value = 0;
    if (api_.GetDeviceInfo(device_, info, sizeof(value), &value, nullptr) != CL_SUCCESS) return 0;
    const auto wide = static_cast<uint64_t>(value);
    return static_cast<int64_t>(
        std::min(wide, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
  }
  int64_t Uint(cl_device_info info) const { return Number<cl_uint>(info); }
  int64_t Ulong(cl_device_info info) const { return Number<cl_ulong>(info); }
  int64_t Size(cl_device_info info) const { return Number<size_t>(info); }
  bool Bool(cl_device_info info) const { return Number<cl_bool>(info) != 0; }
  template <size_t kSize>
  std::array<uint8_t, kSize> Bytes(cl_device_info info) const {
    std::array<uint8_t, kSize> bytes = {};
    if (api_.GetDeviceInfo(device_, info, kSize, bytes.data(), nullptr) != CL_SUCCESS) bytes = {};
    return bytes;
  }
  std::array<int64_t, 3> WorkItems() const {
    size_t sizes[16] = {};
    std::array<int64_t, 3> result = {0, 0, 0};
    if (api_.GetDeviceInfo(device_, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, nullptr) !=
        CL_SUCCESS) {
      return result;
    }
    for (size_t i = 0; i < 3; ++i) {
      result[i] = static_cast<int64_t>(std::min<size_t>(sizes[i], 1u << 30));
    }
    return result;
  }

 private:
  const Api& api_;
  cl_device_id device_;
};

// "OpenCL 3.0 PoCL ..." -> 3, 0
void ParseVersion(const std::string& text, int& major, int& minor) {
  const char* at = text.data();
  const char* end = at + text.size();
  if (!text.starts_with("OpenCL ")) return;
  auto parsed = std::from_chars(at + 7, end, major);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.') {
    std::from_chars(parsed.ptr + 1, end, minor);
  }
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// An identifier of the physical device, if its driver has one: a UUID, or its address on the PCI
// bus.
std::string HardwareId(const Query& query, const DeviceFacts& f) {
  constexpr cl_device_info kUuid = 0x106A, kNvBus = 0x4008, kNvSlot = 0x4009, kNvDomain = 0x400A;
  constexpr cl_device_info kPci = 0x410F;
  if (f.HasExtension("cl_khr_device_uuid")) {
    const std::array<uint8_t, 16> uuid = query.Bytes<16>(kUuid);
    if (uuid != std::array<uint8_t, 16>{}) {
      std::string text = "uuid:";
      for (uint8_t byte : uuid) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
      }
      return text;
    }
  }
  if (f.HasExtension("cl_khr_pci_bus_info")) {
    const auto pci = std::bit_cast<std::array<cl_uint, 4>>(query.Bytes<16>(kPci));
    return StrCat("pci:", pci[0], ":", pci[1], ":", pci[2], ".", pci[3]);
  }
  if (f.HasExtension("cl_nv_device_attribute_query")) {
    const int64_t slot = query.Uint(kNvSlot);
    return StrCat("pci:", query.Uint(kNvDomain), ":", query.Uint(kNvBus), ":", slot >> 3, ".",
                  slot & 7);
  }
  return "";
}

DeviceFacts ReadFacts(const Platform& platform, cl_device_id device) {
  const Query query(*platform.api, device);
  DeviceFacts f;
  f.platform = Text(platform, CL_PLATFORM_NAME);
  f.platform_version = Text(platform, CL_PLATFORM_VERSION);
  f.name = query.Text(CL_DEVICE_NAME);
  f.vendor = query.Text(CL_DEVICE_VENDOR);
  f.driver = query.Text(CL_DRIVER_VERSION);
  f.version = query.Text(CL_DEVICE_VERSION);
  ParseVersion(f.version, f.version_major, f.version_minor);
  // These are bits, and a device may set several (Oclgrind sets all). A device without the GPU bit
  // is not a GPU.
  const auto type = static_cast<cl_device_type>(query.Ulong(CL_DEVICE_TYPE));
  f.type = (type & CL_DEVICE_TYPE_GPU)           ? DeviceType::kGpu
           : (type & CL_DEVICE_TYPE_ACCELERATOR) ? DeviceType::kAccelerator
           : (type & CL_DEVICE_TYPE_CPU)         ? DeviceType::kCpu
                                                 : DeviceType::kOther;
  f.available = query.Bool(CL_DEVICE_AVAILABLE);
  f.compiler = query.Bool(CL_DEVICE_COMPILER_AVAILABLE);
  f.little_endian = query.Bool(CL_DEVICE_ENDIAN_LITTLE);
  f.compute_units = query.Uint(CL_DEVICE_MAX_COMPUTE_UNITS);
  f.clock_mhz = query.Uint(CL_DEVICE_MAX_CLOCK_FREQUENCY);
  f.address_bits = query.Uint(CL_DEVICE_ADDRESS_BITS);
  f.global_memory = query.Ulong(CL_DEVICE_GLOBAL_MEM_SIZE);
  f.max_allocation = query.Ulong(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  // OpenCL gives this value in bits.
  f.base_alignment = std::max<int64_t>(query.Uint(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1);
  f.local_memory = query.Ulong(CL_DEVICE_LOCAL_MEM_SIZE);
  f.local_memory_is_real = query.Uint(CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  f.constant_memory = query.Ulong(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
  f.parameter_bytes = query.Size(CL_DEVICE_MAX_PARAMETER_SIZE);
  f.max_work_group = query.Size(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  f.max_work_items = query.WorkItems();
  f.native_float_width = query.Uint(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  f.preferred_float_width = query.Uint(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT);
  f.unified_memory = query.Bool(CL_DEVICE_HOST_UNIFIED_MEMORY);
  f.profiling_timer_ns = query.Size(CL_DEVICE_PROFILING_TIMER_RESOLUTION);
  f.extensions = Words(query.Text(CL_DEVICE_EXTENSIONS));
  f.claims_fp16 = f.HasExtension("cl_khr_fp16");
  f.claims_fp64 = f.HasExtension("cl_khr_fp64") || query.Ulong(CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  f.claims_subgroups = f.HasExtension("cl_khr_subgroups") || f.HasExtension("cl_intel_subgroups");
  // 64-bit integers are part of the full profile; a device of the embedded profile must list the
  // extension.
  f.claims_int64 =
      query.Text(CL_DEVICE_PROFILE) == "FULL_PROFILE" || f.HasExtension("cles_khr_int64");
  f.hardware_id = HardwareId(query, f);
  return f;
}

// The reason why the backend cannot use a device; empty if it can.
std::string Problem(const DeviceFacts& f) {
  if (!f.available) return "the driver says that it is not available";
  if (!f.compiler) return "its driver has no compiler";
  if (f.version_major < 1 || (f.version_major == 1 && f.version_minor < 2)) {
    return StrCat("it offers '", f.version, "', OpenCL 1.2 is needed");
  }
  if (!f.little_endian) return "it is big-endian";
  if (f.address_bits < 32) return StrCat("it has ", f.address_bits, "-bit addresses");
  if (f.max_work_group < 1 || f.global_memory < 1 || f.max_allocation < 1) {
    return "its driver does not state its limits";
  }
  return "";
}

}  // namespace

std::string_view Name(DeviceType type) {
  switch (type) {
    case DeviceType::kCpu:
      return "cpu";
    case DeviceType::kGpu:
      return "gpu";
    case DeviceType::kAccelerator:
      return "accelerator";
    case DeviceType::kOther:
      return "other";
  }
  return "other";
}

bool DeviceFacts::HasExtension(std::string_view extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

FoundDevice Describe(const Platform& platform, cl_device_id device) {
  DeviceFacts facts = ReadFacts(platform, device);
  std::string problem = Problem(facts);
  return {platform, device, std::move(facts), std::move(problem)};
}

Discovery Discover(const LibraryOptions& options) {
  Discovery discovery;
  Opened opened = OpenPlatforms(options);
  for (Platform& platform : opened.platforms) {
    cl_uint count = 0;
    cl_int error = platform.api->GetDeviceIDs(platform.id, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    std::vector<cl_device_id> ids(error == CL_SUCCESS ? count : 0);
    if (!ids.empty()) {
      error =
          platform.api->GetDeviceIDs(platform.id, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
      if (error != CL_SUCCESS) ids.clear();
    }
    if (ids.empty()) {
      const std::string name = Text(platform, CL_PLATFORM_NAME);
      std::string note = StrCat("platform '", name, "' has no device");
      if (error != CL_SUCCESS && error != CL_DEVICE_NOT_FOUND) {
        note += StrCat(" (", ErrorName(error), ")");
      }
      // Two cases in which a platform has no devices without reporting an error.
      if (name == "rusticl") note += "; it needs RUSTICL_ENABLE=<driver>";
      if (name == "Portable Computing Language") note += "; is its cache folder writable?";
      discovery.notes.push_back(std::move(note));
    }
    for (cl_device_id id : ids) {
      discovery.devices.push_back(Describe(platform, id));
    }
  }
  if (discovery.devices.empty()) {
    discovery.reason = std::move(opened.reason);
    for (const std::string& note : discovery.notes) {
      discovery.reason += (discovery.reason.empty() ? "" : "; ") + note;
    }
  }
  return discovery;
}

}  // namespace oncilla::opencl
