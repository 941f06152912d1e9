// The one place that names the linked backends.
#include "engine/api/backends.h"

#include "backends/cpu/device.h"

namespace oncilla {

std::span<const Backend* const> LinkedBackends() {
  static const Backend* const kBackends[] = {
      &cpu::kBackend,
  };
  return kBackends;
}

}  // namespace oncilla
