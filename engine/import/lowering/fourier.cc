// Matrices of the discrete Fourier transform.
#include "engine/import/lowering/fourier.h"

#include <cmath>
#include <numbers>

namespace oncilla {
namespace {

struct Turn {
  double cosine, sine;
};

// The angle of bin k at point p. Quarter turns are exact, so that terms that should cancel do.
Turn TurnOf(int64_t p, int64_t k, int64_t points) {
  const int64_t part = p * k % points;
  if (4 * part % points == 0) {
    constexpr Turn kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return kQuarters[4 * part / points];
  }
  const double angle =
      2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(points);
  return {std::cos(angle), std::sin(angle)};
}

Tensor As(DType dtype, Shape shape, const std::vector<double>& values) {
  if (dtype == DType::kF64) return Tensor::Of<double>(dtype, std::move(shape), values);
  const std::vector<float> narrow(values.begin(), values.end());
  return Tensor::Of<float>(DType::kF32, std::move(shape), narrow);
}

}  // namespace

Tensor FourierMatrix(DType dtype, int64_t points, int64_t parts, int64_t bins, bool inverse) {
  std::vector<double> matrix;
  matrix.reserve(static_cast<size_t>(points * parts * bins * 2));
  const double sign = inverse ? 1 : -1, scale = inverse ? 1 / static_cast<double>(points) : 1;
  for (int64_t p = 0; p < points; ++p) {
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t k = 0; k < bins; ++k) {
        const Turn turn = TurnOf(p, k, points);
        const double cosine = scale * turn.cosine, sine = scale * sign * turn.sine;
        matrix.push_back(part == 0 ? cosine : -sine);
        matrix.push_back(part == 0 ? sine : cosine);
      }
    }
  }
  return As(dtype, {points, parts, bins, 2}, matrix);
}

Tensor RealInverseMatrix(DType dtype, int64_t points) {
  const int64_t bins = points / 2 + 1;
  std::vector<double> matrix;
  matrix.reserve(static_cast<size_t>(bins * 2 * points));
  for (int64_t k = 0; k < bins; ++k) {
    // A bin strictly between the first and the middle one also stands for its mirror image.
    const bool alone = k == 0 || 2 * k == points;
    const double scale = (alone ? 1.0 : 2.0) / static_cast<double>(points);
    for (int part = 0; part < 2; ++part) {
      for (int64_t p = 0; p < points; ++p) {
        const Turn turn = TurnOf(p, k, points);
        matrix.push_back(part == 0 ? scale * turn.cosine : alone ? 0.0 : -scale * turn.sine);
      }
    }
  }
  return As(dtype, {bins, 2, points}, matrix);
}

}  // namespace oncilla
