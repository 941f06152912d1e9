// Resolves a session's memory options for one device: the limit, its origin, and the memory to
// allocate in advance. Pure functions, except that a device may be asked for its free memory.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/free_memory.h"
#include "engine/memory/pool.h"
#include "engine/session/memory_options.h"
#include "engine/session/visible_devices.h"

namespace oncilla {

struct DeviceMemoryPlan {
  int64_t limit_bytes = 0;
  // For reports: "0.5 of 8.00 GiB", "free 7.2 GiB (MemAvailable of /proc/meminfo) less 1.00 GiB".
  std::string limit_source;
  int64_t commit_bytes = 0;  // allocated when the device is opened
  int64_t reserve_bytes = 0;
  double fragmentation = 0;
  int64_t growth_first_bytes = 0;  // 0: regions of exact size; see DeviceMemoryOptions
  double growth_factor = 2;
  int64_t growth_cap_bytes = INT64_MAX;
};

// InvalidArgument for options that contradict each other, naming both, or are out of range; `where`
// begins the message: "memory of 'GPU:0'".
Status CheckMemoryOptions(const DeviceMemoryOptions& options, std::string_view where);

// The options per device or type: `given`, with the short forms (bytes or a fraction for every
// device) under "*". InvalidArgument when a key is not a device name, options contradict each
// other, or a short form and "*" both set a limit.
Result<std::map<std::string, DeviceMemoryOptions>> AllMemoryOptions(
    std::map<std::string, DeviceMemoryOptions> given, int64_t limit_bytes, double limit_fraction);

// How specifically a key matches the device: the most for its own name, in any of TensorFlow's
// spellings, less for its type ("GPU"), least for "*" and ""; 0 when it does not match.
int Closeness(std::string_view key, const ListedDevice& device);

// Keys for a device or type that is not in `devices`, each with near names and the list: "'GPU:9'
// is not there; did you mean 'GPU:0'? There is: CPU:0 (..), GPU:0 (..)". The types CPU and GPU may
// be absent, and so may a GPU unless `knows_gpus`.
std::vector<std::string> AbsentKeys(const std::map<std::string, DeviceMemoryOptions>& options,
                                    std::span<const ListedDevice> devices, bool knows_gpus);

// InvalidArgument for a limit above the device's memory, if that is known; `where` begins the
// message: "memory of 'GPU:0'".
Status CheckLimit(int64_t limit_bytes, const DeviceInfo& info, std::string_view where);

// The options of `device`: those of the key that matches it most specifically. InvalidArgument if
// they set a limit for this one device that is above its memory.
Result<DeviceMemoryOptions> OptionsFor(const std::map<std::string, DeviceMemoryOptions>& options,
                                       const ListedDevice& device);

// `device`, which may be null, reports its free memory if it can. InvalidArgument if the memory to
// allocate in advance is above the limit.
Result<DeviceMemoryPlan> PlanDeviceMemory(const DeviceMemoryOptions& options,
                                          const DeviceInfo& info, const Device* device,
                                          std::string_view where);

}  // namespace oncilla
