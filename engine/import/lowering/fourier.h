// Fourier transforms as constant matrices, for transforms that are lowered to products: exact to
// rounding, and fast enough for the few thousand points that models transform.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

// The largest matrix that is allowed; larger transforms are refused.
inline constexpr int64_t kMostFourierBytes = int64_t{1} << 27;

// [points, parts, bins, 2] of f32 or f64: the contribution of a real (parts 1) or complex (parts 2)
// point to each bin. The inverse is divided by the number of points.
Tensor FourierMatrix(DType dtype, int64_t points, int64_t parts, int64_t bins, bool inverse);

// [points / 2 + 1, 2, points]: the contribution of each bin of a real signal to each of its points.
Tensor RealInverseMatrix(DType dtype, int64_t points);

}  // namespace oncilla
