// Custom ops that work on landmarks: points of a face or hand, three numbers each.
#pragma once

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// The matrix that takes the pixels of a crop around some landmarks, turned upright,
// to those of the image; landmarks by a matrix; and an image by one, read between its pixels.
Result<Values> LowerTransformMatrix(TfliteLowering& b);
Result<Values> LowerTransformLandmarks(TfliteLowering& b);
Result<Values> LowerTransformTensor(TfliteLowering& b);

}  // namespace oncilla
