// The backends linked into this build, in the order devices are listed; the CPU is first.
#pragma once

#include <span>

#include "engine/device/host_objects.h"

namespace oncilla {

std::span<const Backend* const> LinkedBackends();

// A device in the application's own OpenCL context. Unimplemented in a build without OpenCL.
Result<HostDevice> BorrowOpenCl(const HostHandles& handles);

}  // namespace oncilla
