// The OpenCL backend's entry for the list of linked backends; includes no OpenCL header.
#pragma once

#include "engine/device/host_objects.h"

namespace oncilla::opencl {

extern const Backend kBackend;

// A device in the application's own context. InvalidArgument for handles that do not belong
// together, Unimplemented, with the reason, for a device that the backend cannot use.
Result<HostDevice> Borrow(const HostHandles& handles);

}  // namespace oncilla::opencl
