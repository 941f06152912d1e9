// The null backend: a template that compiles, is listed nowhere and refuses politely.
#pragma once

#include "engine/device/device.h"

namespace oncilla::null {

extern const Backend kBackend;

}  // namespace oncilla::null
