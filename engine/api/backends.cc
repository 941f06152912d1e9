// The one place that names the linked backends.
#include "backends/cpu/device.h"
#include "engine/device/linked_backends.h"
#ifdef ONCILLA_OPENCL
#include "backends/opencl/backend.h"
#endif

namespace oncilla {

std::span<const Backend* const> LinkedBackends() {
  static const Backend* const kBackends[] = {
      &cpu::kBackend,
#ifdef ONCILLA_OPENCL
      &opencl::kBackend,
#endif
  };
  return kBackends;
}

#ifdef ONCILLA_OPENCL
Result<HostDevice> BorrowOpenCl(const HostHandles& handles) { return opencl::Borrow(handles); }
#else
Result<HostDevice> BorrowOpenCl(const HostHandles&) {
  return Unsupported("this build has no OpenCL");
}
#endif

}  // namespace oncilla
