// The OpenCL backend's row for the list of linked backends; brings in no OpenCL header.
#pragma once

#include "engine/device/device.h"

namespace oncilla::opencl {

extern const Backend kBackend;

}  // namespace oncilla::opencl
