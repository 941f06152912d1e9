// Fourier transforms as constant matrices, for transforms that become products: exact to rounding,
// and fit for the few thousand points that models transform.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

// The largest matrix that is made; larger transforms are refused.
inline constexpr int64_t kMostFourierBytes = int64_t{1} << 27;

// [points, parts, bins, 2] of f32 or f64: what a real (parts 1) or complex (parts 2) point adds to
// each bin. The inverse is divided by the number of points.
Tensor FourierMatrix(DType dtype, int64_t points, int64_t parts, int64_t bins, bool inverse);

// [points / 2 + 1, 2, points]: what each bin of a real signal adds to each point of it.
Tensor RealInverseMatrix(DType dtype, int64_t points);

}  // namespace oncilla
