// The backends linked into this build, in the order devices are listed; the CPU is first.
#pragma once

#include <span>

#include "engine/device/device.h"

namespace oncilla {

std::span<const Backend* const> LinkedBackends();

}  // namespace oncilla
