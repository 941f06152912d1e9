// Limits from options and from what a device reports.
#include "engine/session/device_memory.h"

#include <algorithm>

#include "engine/base/format.h"
#include "engine/base/near_names.h"
#include "engine/placement/device_name.h"

namespace oncilla {
namespace {

template <class... Parts>
Status Bad(std::string_view where, const Parts&... parts) {
  return WithStage(InvalidArgument(where, ": ", parts...), Stage::kOptions);
}

// A fraction of some bytes, never more than all of them.
int64_t Share(double fraction, int64_t bytes) {
  return std::min(bytes, static_cast<int64_t>(fraction * static_cast<double>(bytes)));
}

bool IsShare(double fraction) { return fraction >= 0 && fraction <= 1; }

FreeMemory FreeOf(const DeviceInfo& info, const Device* device) {
  if (const auto* tells = dynamic_cast<const TellsFreeMemory*>(device)) {
    if (const auto free = tells->free_memory(); free.has_value()) return *free;
  }
  return {DefaultLimitBytes(info), "free memory is unknown, so: all but 300 MiB or 6 %"};
}

}  // namespace

Status CheckMemoryOptions(const DeviceMemoryOptions& o, std::string_view where) {
  if (o.limit_bytes < 0) return Bad(where, "limit_bytes is ", o.limit_bytes);
  if (!IsShare(o.limit_fraction)) {
    return Bad(where, "limit_fraction is ", o.limit_fraction, ", not in [0, 1]");
  }
  if (o.free_minus_bytes < -1) return Bad(where, "free_minus_bytes is ", o.free_minus_bytes);
  if (o.preallocate_bytes < 0) return Bad(where, "preallocate_bytes is ", o.preallocate_bytes);
  if (!IsShare(o.preallocate_fraction)) {
    return Bad(where, "preallocate_fraction is ", o.preallocate_fraction, ", not in [0, 1]");
  }
  if (o.reserve_bytes < 0) return Bad(where, "reserve_bytes is ", o.reserve_bytes);
  if (!(o.fragmentation >= 0 && o.fragmentation < 1)) {
    return Bad(where, "fragmentation is ", o.fragmentation, ", not in [0, 1)");
  }
  if (o.growth_first_bytes < 0 || o.growth_cap_bytes < 0) {
    return Bad(where, "growth_first_bytes is ", o.growth_first_bytes, " and growth_cap_bytes is ",
               o.growth_cap_bytes);
  }
  if (!(o.growth_factor >= 1 && o.growth_factor <= 16)) {
    return Bad(where, "growth_factor is ", o.growth_factor, ", not in [1, 16]");
  }
  if (o.growth_cap_bytes > 0 && o.growth_cap_bytes < o.growth_first_bytes) {
    return Bad(where, "growth_cap_bytes is ", o.growth_cap_bytes,
               ", less than growth_first_bytes, ", o.growth_first_bytes);
  }
  if (o.growth_cap_bytes > 0 && o.growth_first_bytes == 0) {
    return Bad(where, "growth_cap_bytes is given without growth_first_bytes");
  }
  if (o.limit_bytes > 0 && o.limit_fraction > 0) {
    return Bad(where, "limit_bytes is ", o.limit_bytes, " and limit_fraction is ", o.limit_fraction,
               "; give one");
  }
  if (o.free_minus_bytes >= 0 && o.limit_bytes > 0) {
    return Bad(where, "limit_bytes is ", o.limit_bytes, " and free_minus_bytes is ",
               o.free_minus_bytes, "; give one");
  }
  if (o.free_minus_bytes >= 0 && o.limit_fraction > 0) {
    return Bad(where, "limit_fraction is ", o.limit_fraction, " and free_minus_bytes is ",
               o.free_minus_bytes, "; give one");
  }
  if (o.preallocate_bytes > 0 && o.preallocate_fraction > 0) {
    return Bad(where, "preallocate_bytes is ", o.preallocate_bytes, " and preallocate_fraction is ",
               o.preallocate_fraction, "; give one");
  }
  if (o.limit_bytes > 0 && o.reserve_bytes > o.limit_bytes) {
    return Bad(where, "reserve_bytes is ", o.reserve_bytes, ", above limit_bytes, which is ",
               o.limit_bytes);
  }
  if (o.limit_bytes > 0 && o.preallocate_bytes > o.limit_bytes) {
    return Bad(where, "preallocate_bytes is ", o.preallocate_bytes,
               ", above limit_bytes, which is ", o.limit_bytes);
  }
  return Status();
}

Result<std::map<std::string, DeviceMemoryOptions>> AllMemoryOptions(
    std::map<std::string, DeviceMemoryOptions> given, int64_t limit_bytes, double limit_fraction) {
  if (given.count("") != 0 && given.count("*") != 0) {
    return Bad("device_memory", "both '*' and '' mean every device; give one");
  }
  if (const auto empty = given.find(""); empty != given.end()) {
    given["*"] = empty->second;
    given.erase("");
  }
  std::map<std::string, std::string_view> keys;  // by what they mean
  for (const auto& [name, options] : given) {
    const auto parsed = DeviceName::Parse(name);
    if (name != "*" && !parsed.ok()) {
      return Bad("device_memory", "'", name, "' is none of CPU, GPU, '*' and the name of a device");
    }
    const auto [same, first] = keys.emplace(name == "*" ? name : parsed->text(), name);
    if (!first) {
      return Bad("device_memory", "'", same->second, "' and '", name, "' mean the same; give one");
    }
    ONCILLA_TRY(CheckMemoryOptions(options, StrCat("device_memory of '", name, "'")));
  }
  if (limit_bytes == 0 && limit_fraction == 0) return given;
  if (limit_bytes > 0 && limit_fraction > 0) {
    return Bad("the memory limit", "memory_limit_bytes is ", limit_bytes,
               " and memory_limit_fraction is ", limit_fraction, "; give one");
  }
  DeviceMemoryOptions& all = given["*"];
  if (all.limit_bytes > 0 || all.limit_fraction > 0 || all.free_minus_bytes >= 0) {
    return Bad("the memory limit", limit_bytes > 0 ? "memory_limit_bytes" : "memory_limit_fraction",
               " and device_memory of '*' both limit every device; give one");
  }
  all.limit_bytes = limit_bytes;
  all.limit_fraction = limit_fraction;
  ONCILLA_TRY(CheckMemoryOptions(all, "the memory of every device"));
  return given;
}

int Closeness(std::string_view key, const ListedDevice& device) {
  if (key.empty()) return 1;
  if (key == "*") return 2;
  const auto wanted = DeviceName::Parse(key);
  const auto name = DeviceName::Parse(device.name);
  if (!wanted.ok() || !name.ok() || !IsCompleteSpecification(*wanted, *name)) return 0;
  const int around =
      wanted->job.has_value() + wanted->replica.has_value() + wanted->task.has_value();
  return 3 + around + (wanted->type ? 4 : 0) + (wanted->id ? 8 : 0);
}

std::vector<std::string> AbsentKeys(const std::map<std::string, DeviceMemoryOptions>& options,
                                    std::span<const ListedDevice> devices, bool knows_gpus) {
  std::vector<std::string> names, absent;
  for (const ListedDevice& device : devices) {
    if (!device.name.empty()) names.push_back(device.short_name());
  }
  for (const auto& [key, unused] : options) {
    const auto wanted = DeviceName::Parse(key);
    if (!wanted.ok()) continue;  // "*"
    const bool type = key == "CPU" || key == "GPU";
    if (type || (!knows_gpus && wanted->type != "CPU")) continue;
    const bool there = std::any_of(
        devices.begin(), devices.end(),
        [&key = key](const ListedDevice& device) { return Closeness(key, device) > 0; });
    if (there) continue;
    absent.push_back(
        StrCat("'", key, "' is not there", DidYouMeanAmong(key, names, ListText(devices))));
  }
  return absent;
}

Status CheckLimit(int64_t limit_bytes, const DeviceInfo& info, std::string_view where) {
  if (info.memory_bytes <= 0 || limit_bytes <= info.memory_bytes) return Status();
  return Bad(where, "the limit is ", limit_bytes, " bytes; the device has ", info.memory_bytes);
}

Result<DeviceMemoryOptions> OptionsFor(const std::map<std::string, DeviceMemoryOptions>& options,
                                       const ListedDevice& device) {
  const std::pair<const std::string, DeviceMemoryOptions>* closest = nullptr;
  int most = 0;
  for (const auto& entry : options) {
    const int closeness = Closeness(entry.first, device);
    if (closeness <= most) continue;
    most = closeness;
    closest = &entry;
  }
  if (closest == nullptr) return DeviceMemoryOptions();
  const auto name = DeviceName::Parse(closest->first);
  if (name.ok() && name->id.has_value()) {
    ONCILLA_TRY(CheckLimit(closest->second.limit_bytes, device.info,
                           StrCat("device_memory of '", closest->first, "'")));
  }
  return closest->second;
}

Result<DeviceMemoryPlan> PlanDeviceMemory(const DeviceMemoryOptions& options,
                                          const DeviceInfo& info, const Device* device,
                                          std::string_view where) {
  ONCILLA_TRY(CheckMemoryOptions(options, where));
  DeviceMemoryPlan plan;
  plan.reserve_bytes = options.reserve_bytes;
  plan.fragmentation = options.fragmentation;
  plan.growth_first_bytes = options.growth_first_bytes;
  plan.growth_factor = options.growth_factor;
  if (options.growth_cap_bytes > 0) plan.growth_cap_bytes = options.growth_cap_bytes;
  if (options.limit_bytes > 0) {
    plan.limit_bytes = options.limit_bytes;
    plan.limit_source = "as set";
  } else if (options.limit_fraction > 0 && info.memory_bytes > 0) {
    plan.limit_bytes = std::max<int64_t>(1, Share(options.limit_fraction, info.memory_bytes));
    plan.limit_source = StrCat(options.limit_fraction, " of ", HumanBytes(info.memory_bytes));
  } else if (options.free_minus_bytes >= 0) {
    const FreeMemory free = FreeOf(info, device);
    if (options.free_minus_bytes >= free.bytes) {
      return Bad(where, "free_minus_bytes is ", options.free_minus_bytes, ", but ", free.bytes,
                 " bytes are free (", free.source, ")");
    }
    plan.limit_bytes = free.bytes - options.free_minus_bytes;
    plan.limit_source = StrCat("free ", HumanBytes(free.bytes), " (", free.source, ") less ",
                               HumanBytes(options.free_minus_bytes));
  } else {
    plan.limit_bytes = DefaultLimitBytes(info);
    plan.limit_source = info.memory_bytes > 0 ? StrCat("all of ", HumanBytes(info.memory_bytes),
                                                       " but 300 MiB or 6 %")
                                              : "none: the device does not report its memory";
  }
  const int64_t ahead = options.preallocate_fraction > 0
                            ? Share(options.preallocate_fraction, plan.limit_bytes)
                            : options.preallocate_bytes;
  if (ahead > plan.limit_bytes) {
    return Bad(where, "preallocate_bytes is ", ahead, ", above the limit of ", plan.limit_bytes,
               " (", plan.limit_source, ")");
  }
  if (options.reserve_bytes > plan.limit_bytes) {
    return Bad(where, "reserve_bytes is ", options.reserve_bytes, ", above the limit of ",
               plan.limit_bytes, " (", plan.limit_source, ")");
  }
  plan.commit_bytes = std::max(ahead, options.reserve_bytes);
  return plan;
}

}  // namespace oncilla
