// The null backend: a template that compiles, is not listed anywhere and refuses every call.
#pragma once

#include "engine/device/device.h"

namespace oncilla::null {

extern const Backend kBackend;

}  // namespace oncilla::null
