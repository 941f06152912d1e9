// What TFLite's convolutions and pools have in common.
#pragma once

#include <string>

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// The padding in field 0 of the options, as canonical ops spell it.
Result<std::string> TflitePadding(const TfliteLowering& b);

}  // namespace oncilla
