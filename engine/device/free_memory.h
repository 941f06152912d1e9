// What of a device's memory is free, where something tells: an estimate, since others take and give
// back at any time. A limit that holds comes from our own accounting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace oncilla {

struct FreeMemory {
  int64_t bytes = 0;
  std::string source;  // "cl_amd_device_attribute_query"
};

// What a Device may be too.
class TellsFreeMemory {
 public:
  virtual ~TellsFreeMemory() = default;
  // Nothing where nobody tells. Thread-safe.
  virtual std::optional<FreeMemory> free_memory() const = 0;
};

}  // namespace oncilla
