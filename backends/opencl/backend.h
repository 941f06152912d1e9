// The OpenCL backend's row for the list of linked backends; brings in no OpenCL header.
#pragma once

#include "engine/device/host_objects.h"

namespace oncilla::opencl {

extern const Backend kBackend;

// A device in the application's own context. InvalidArgument for handles that do not go together,
// Unimplemented, with the reason, for a device that the backend cannot use.
Result<HostDevice> Borrow(const HostHandles& handles);

}  // namespace oncilla::opencl
