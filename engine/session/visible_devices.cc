// Filtering and numbering lists of devices.
#include "engine/session/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/placement/device_name.h"
#include "engine/session/device_memory.h"

namespace oncilla {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsGpu(const ListedDevice& device) { return device.info.type != "CPU"; }

// The indices of the devices that an entry matches.
std::vector<size_t> Meant(std::span<const ListedDevice> devices, std::string_view entry) {
  const std::string wanted = Lower(entry);
  int number = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  const bool is_number = error == std::errc() && end == entry.data() + entry.size();
  // Any of TensorFlow's spellings of one device: "/GPU:1", "/device:GPU:1", or the full name.
  const auto parsed = DeviceName::Parse(entry);
  const bool is_name = !is_number && parsed.ok() && parsed->type.has_value();
  std::vector<size_t> exact, parts;
  for (size_t i = 0; i < devices.size(); ++i) {
    const ListedDevice& device = devices[i];
    if (device.name.empty() || !IsGpu(device)) continue;
    const auto name = DeviceName::Parse(device.name);
    const bool named = is_name && name.ok() && IsCompleteSpecification(*parsed, *name);
    if (is_number ? Lower(device.short_name()) == StrCat("gpu:", number)
                  : named || wanted == Lower(device.info.id)) {
      exact.push_back(i);
    } else if (!is_number && !is_name &&
               Lower(device.info.name).find(wanted) != std::string::npos) {
      parts.push_back(i);
    }
  }
  return exact.empty() ? parts : exact;
}

}  // namespace

std::string ListedDevice::short_name() const { return ShortDeviceName(name); }

std::string LocalDeviceName(std::string_view type, int number) {
  return StrCat("/job:localhost/replica:0/task:0/device:", type, ":", number);
}

std::string ListText(std::span<const ListedDevice> devices) {
  std::string out;
  for (const ListedDevice& d : devices) {
    if (d.name.empty()) continue;
    out += StrCat(out.empty() ? "" : ", ", d.short_name(), " (", d.info.name, ")");
  }
  return out;
}

Result<std::vector<ListedDevice>> SeeOnly(std::span<const ListedDevice> devices,
                                          std::span<const std::string> entries,
                                          std::string_view why) {
  std::vector<ListedDevice> seen, rest;
  std::vector<bool> taken(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    if (IsGpu(devices[i])) continue;
    seen.push_back(devices[i]);
    taken[i] = true;
  }
  int number = 0;
  for (const std::string& entry : entries) {
    const std::vector<size_t> meant = Meant(devices, entry);
    if (meant.empty()) {
      return WithStage(NotFound("visible devices: there is no GPU '", entry,
                                "'; available: ", ListText(devices)),
                       Stage::kDevice);
    }
    if (meant.size() > 1) {
      return WithStage(InvalidArgument("visible devices: '", entry, "' is part of ", meant.size(),
                                       " names; available: ", ListText(devices)),
                       Stage::kDevice);
    }
    if (taken[meant[0]]) continue;
    taken[meant[0]] = true;
    seen.push_back(devices[meant[0]]);
    seen.back().name = LocalDeviceName(seen.back().info.type, number++);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (taken[i]) continue;
    seen.push_back(devices[i]);
    if (!seen.back().name.empty()) seen.back().note = why;
    seen.back().name.clear();
  }
  return seen;
}

std::vector<ListedDevice> SeeFirst(std::vector<ListedDevice> devices, int count,
                                   std::string_view why) {
  for (ListedDevice& device : devices) {
    if (device.name.empty() || !IsGpu(device) || count-- > 0) continue;
    device.name.clear();
    device.note = why;
  }
  return devices;
}

Result<std::vector<ListedDevice>> Divide(std::vector<ListedDevice> devices,
                                         std::span<const LogicalDevice> parts) {
  if (parts.empty()) return devices;
  std::vector<std::vector<int64_t>> limits(devices.size());
  for (const LogicalDevice& part : parts) {
    auto index = ResolveDevice(part.physical, devices, {});
    if (!index.ok()) return In(index.status(), "logical devices");
    const std::string where = StrCat("logical devices: a part of '", part.physical, "'");
    if (part.memory_limit_bytes < 0) {
      return WithStage(InvalidArgument(where, ": the limit is ", part.memory_limit_bytes, " bytes"),
                       Stage::kOptions);
    }
    ONCILLA_TRY(CheckLimit(part.memory_limit_bytes, devices[*index].info, where));
    limits[*index].push_back(part.memory_limit_bytes);
  }
  std::vector<ListedDevice> out;
  std::map<std::string, int> numbers;  // by type
  for (size_t i = 0; i < devices.size(); ++i) {
    if (limits[i].empty()) limits[i].push_back(0);
    for (int64_t limit : limits[i]) {
      out.push_back(devices[i]);
      if (out.back().name.empty()) continue;
      out.back().name = LocalDeviceName(out.back().info.type, numbers[out.back().info.type]++);
      out.back().part_limit_bytes = limit;
    }
  }
  return out;
}

Result<size_t> ResolveDevice(const std::string& spec, std::span<const ListedDevice> devices,
                             std::span<const std::string> notes) {
  auto missing = [&](const std::string& why) {
    std::string text;
    for (const std::string& note : notes) text += "; " + note;
    return WithStage(
        NotFound("there is no device '", spec, "'", why, "; available: ", ListText(devices), text),
        Stage::kDevice);
  };
  if (spec == "auto" || spec.empty()) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (!devices[i].name.empty() && IsGpu(devices[i])) return i;
    }
    return 0;
  }
  std::string text = spec == "cpu:plain" || spec == "cpu" ? "CPU:0" : spec;
  if (text == "gpu" || text == "GPU") text = "GPU:0";
  auto wanted = DeviceName::Parse(text);
  if (!wanted.ok()) return missing(StrCat(" (", Message(wanted.status()), ")"));
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].name.empty()) continue;
    auto name = DeviceName::Parse(devices[i].name);
    if (name.ok() && IsCompleteSpecification(*wanted, *name)) return i;
  }
  return missing("");
}

}  // namespace oncilla
