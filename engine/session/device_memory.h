// What a session's memory options come to on one device: the limit, where it comes from, and what
// is taken beforehand. Pure but for the question to the device what is free.
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
  // In words, for reports: "0.5 of 8.00 GiB", "free 7.2 GiB (MemAvailable of /proc/meminfo) less
  // 1.00 GiB".
  std::string limit_source;
  int64_t commit_bytes = 0;  // taken when the device is opened
  int64_t reserve_bytes = 0;
  double fragmentation = 0;
  int64_t growth_first_bytes = 0;  // 0: regions to size; see DeviceMemoryOptions
  double growth_factor = 2;
  int64_t growth_cap_bytes = INT64_MAX;
};

// InvalidArgument for options that contradict each other, naming both, or are out of range; `where`
// begins the message: "memory of 'GPU:0'".
Status CheckMemoryOptions(const DeviceMemoryOptions& options, std::string_view where);

// The options per device as a session means them: `given`, with the short forms (bytes or a
// fraction for every device) under "*". InvalidArgument when a name is not a device's,
// options contradict each other, or a short form and "*" both set a limit.
Result<std::map<std::string, DeviceMemoryOptions>> AllMemoryOptions(
    std::map<std::string, DeviceMemoryOptions> given, int64_t limit_bytes, double limit_fraction);

// How closely a key means the device: the most for its own name, in any of TensorFlow's spellings,
// less for its type ("GPU"), least for "*" and ""; 0 when it means another.
int Closeness(std::string_view key, const ListedDevice& device);

// Keys that name one device or type of which `devices` has none, each with near names and the list:
// "'GPU:9' is not there; did you mean 'GPU:0'? There is: CPU:0 (..), GPU:0 (..)". The types CPU and
// GPU alone may be absent, and a GPU may unless `knows_gpus`.
std::vector<std::string> AbsentKeys(const std::map<std::string, DeviceMemoryOptions>& options,
                                    std::span<const ListedDevice> devices, bool knows_gpus);

// InvalidArgument for a limit above what the device has, where it tells that; `where` begins the
// message: "memory of 'GPU:0'".
Status CheckLimit(int64_t limit_bytes, const DeviceInfo& info, std::string_view where);

// The options of `device`: those under the key that means it most closely. InvalidArgument where
// they give a limit to this one device that is above its memory.
Result<DeviceMemoryOptions> OptionsFor(const std::map<std::string, DeviceMemoryOptions>& options,
                                       const ListedDevice& device);

// `device` tells what is free, where it can; it may be null. InvalidArgument where what is taken
// beforehand is above the limit.
Result<DeviceMemoryPlan> PlanDeviceMemory(const DeviceMemoryOptions& options,
                                          const DeviceInfo& info, const Device* device,
                                          std::string_view where);

}  // namespace oncilla
