// TFLite's recurrent layers.
#include "engine/import/tflite/lowering.h"

namespace oncilla {

std::span<const TfliteOpRow> TfliteRecurrentRows() { return {}; }

}  // namespace oncilla
