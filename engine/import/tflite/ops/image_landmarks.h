// Custom ops on landmarks: points of a face or hand, three numbers each.
#pragma once

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// The matrix that maps the pixels of an upright crop around some landmarks to those of the image;
// landmarks transformed by a matrix; and an image resampled by one.
Result<Values> LowerTransformMatrix(TfliteLowering& b);
Result<Values> LowerTransformLandmarks(TfliteLowering& b);
Result<Values> LowerTransformTensor(TfliteLowering& b);

}  // namespace oncilla
