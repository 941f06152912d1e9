// The free memory of a device, where a driver or the system reports it. It is an estimate, since
// other processes allocate and free at any time; limits are enforced by the engine's own
// accounting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace oncilla {

struct FreeMemory {
  int64_t bytes = 0;
  std::string source;  // "cl_amd_device_attribute_query"
};

// An interface that a Device may implement too.
class TellsFreeMemory {
 public:
  virtual ~TellsFreeMemory() = default;
  // Nothing where it is not reported. Thread-safe.
  virtual std::optional<FreeMemory> free_memory() const = 0;
};

}  // namespace oncilla
