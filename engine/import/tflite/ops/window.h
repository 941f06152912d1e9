// What TFLite's convolutions and pools have alike.
#pragma once

#include <string>

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// The padding that field 0 of the options names, as canonical ops spell it.
Result<std::string> TflitePadding(const TfliteLowering& b);

}  // namespace oncilla
