// Fourier transforms as products with constant matrices. Long ones take two steps (Cooley and
// Tukey's): of points = rows * columns points, first the columns are transformed, each by a matrix
// that also has its twiddle factors, then the rows. So 4096 points take a sixteenth of the work.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// The largest matrix that is allowed; larger transforms are refused.
inline constexpr int64_t kMostFourierBytes = int64_t{1} << 27;

// [points, parts, bins, 2] of f32 or f64: the contribution of a real (parts 1) or complex (parts 2)
// point to each bin. The inverse is divided by the number of points.
Tensor FourierMatrix(DType dtype, int64_t points, int64_t parts, int64_t bins, bool inverse);

// [points / 2 + 1, 2, points]: the contribution of each bin of a real signal to each of its points.
Tensor RealInverseMatrix(DType dtype, int64_t points);

// Transforms x [.., points * parts], whose rank is known, to [.., bins * 2]: the first `bins` bins
// of the transform, or of the inverse one, which is divided by the number of points. The matrices
// have the type of x, computed in `waves`.
Result<ValueId> AddFourier(Lowering& b, ValueId x, int64_t points, int64_t parts, int64_t bins,
                           bool inverse, DType waves, std::string_view role);

// The inverse of one side: x [.., (points / 2 + 1) * 2] to [.., points] of a real signal.
Result<ValueId> AddRealInverse(Lowering& b, ValueId x, int64_t points, DType waves,
                               std::string_view role);

}  // namespace oncilla
