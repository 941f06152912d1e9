// The CPU as a device.
#pragma once

#include "engine/device/device.h"

namespace oncilla::cpu {

extern const Backend kBackend;

}  // namespace oncilla::cpu
