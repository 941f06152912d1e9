// Which of a machine's devices are visible, and under which names: filters and numbering of lists.
//
// A list has the CPU first, then GPUs in order. Unusable devices have no name and come last.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device.h"
#include "engine/session/session_options.h"

namespace oncilla {

struct ListedDevice {
  std::string name;  // "/job:localhost/replica:0/task:0/device:GPU:0"; empty when not usable
  std::string note;  // why it is not usable, or "borrowed from the application"
  DeviceInfo info;
  const Backend* backend = nullptr;
  // Opens the device if the backend does not: for a device of the application.
  std::function<Result<std::unique_ptr<Device>>(const OpenOptions& options)> opener = nullptr;
  int64_t part_limit_bytes = 0;  // of a logical device; 0: the physical one's

  std::string short_name() const;  // "GPU:0"
  Result<std::unique_ptr<Device>> Open(const OpenOptions& options) const {
    return opener ? opener(options) : backend->open(info, options);
  }
};

// The full name of device `number` of a type ("CPU", "GPU").
std::string LocalDeviceName(std::string_view type, int number);

// "CPU:0 (AMD EPYC), GPU:0 (..)": the usable ones, for messages.
std::string ListText(std::span<const ListedDevice> devices);

// The GPUs that the entries name, in their order, each once, renumbered from 0; the others lose
// their names and get `why` as their note. An entry is a number ("1", of GPU:1), a device's name in
// any of TensorFlow's forms ("GPU:1", "/GPU:1", the full name), its stable id, or a part of the
// driver's name for it, ignoring case. The CPU is always visible. NotFound, with the list, for an
// entry that matches no GPU; InvalidArgument for a part of several names.
Result<std::vector<ListedDevice>> SeeOnly(std::span<const ListedDevice> devices,
                                          std::span<const std::string> entries,
                                          std::string_view why);

// Only the first `count` GPUs keep their names, as TensorFlow's device_count defines it.
std::vector<ListedDevice> SeeFirst(std::vector<ListedDevice> devices, int count,
                                   std::string_view why);

// Replaces the devices named in `parts` by their parts, in the order of the devices and, within one
// device, of the parts; all are renumbered. NotFound for a device that is not in the list,
// InvalidArgument for a limit below 0 or above the device's memory.
Result<std::vector<ListedDevice>> Divide(std::vector<ListedDevice> devices,
                                         std::span<const LogicalDevice> parts);

// The index in the list of the device that SPEC names: "auto" (the first GPU, else the CPU), "cpu",
// "cpu:plain", "gpu", "gpu:1" or a full or partial TensorFlow device name. NotFound lists the
// devices, and the `notes` on why there are no more; "auto" never fails.
Result<size_t> ResolveDevice(const std::string& spec, std::span<const ListedDevice> devices,
                             std::span<const std::string> notes);

}  // namespace oncilla
