// Custom ops by name: those that MediaPipe's models have.
#include "engine/import/tflite/lowering.h"

namespace oncilla {

std::span<const TfliteOpRow> TfliteCustomRows() { return {}; }

}  // namespace oncilla
