// Matrices of the discrete Fourier transform, and the nodes that multiply by them.
#include "engine/import/lowering/fourier.h"

#include <cmath>
#include <numbers>

#include "engine/ops/array/movement.h"
#include "engine/ops/math/matmul.h"

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

// Transforms of fewer points than this are one product; of more than kMostPoints, no matrix fits.
constexpr int64_t kManyPoints = 1024, kMostPoints = int64_t{1} << 24;
constexpr int64_t kFewestRows = 8;

// The largest divisor of `points` that is not above its square root; 0 where one product is as
// good.
int64_t RowsOf(int64_t points) {
  if (points < kManyPoints || points > kMostPoints) return 0;
  int64_t rows = 0;
  for (int64_t n = kFewestRows; n * n <= points; ++n) {
    if (points % n == 0) rows = n;
  }
  return rows;
}

// A transform in two steps: x [R, i, j, parts] is multiplied over (i, part) by a matrix for each j,
// then over (j, part) by one for all, which gives [R, m, k, results].
struct TwoSteps {
  int64_t i = 0, j = 0, parts = 0, k = 0, m = 0, results = 0;
  std::vector<double> first;   // [j, i, parts, k, 2]
  std::vector<double> second;  // [j, 2, m, results]
};

// The four numbers, or with one result per place two, by which a complex number is multiplied.
void PushTurn(std::vector<double>& to, Turn turn, double scale, int part, bool real_only = false) {
  const double cosine = scale * turn.cosine, sine = scale * turn.sine;
  to.push_back(part == 0 ? cosine : -sine);
  if (!real_only) to.push_back(part == 0 ? sine : cosine);
}

TwoSteps ForwardSteps(int64_t points, int64_t parts, int64_t bins, bool inverse) {
  const int64_t rows = RowsOf(points), columns = points / rows;
  TwoSteps out = {rows, columns, parts, rows, (bins + rows - 1) / rows, 2, {}, {}};
  const auto turn_of = [&](int64_t p, int64_t k, int64_t period) {
    Turn turn = TurnOf(p, k, period);
    if (!inverse) turn.sine = -turn.sine;
    return turn;
  };
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int part = 0; part < parts; ++part) {
        for (int64_t k = 0; k < rows; ++k) {
          PushTurn(out.first, turn_of(row * columns + column, k, points), 1, part);
        }
      }
    }
  }
  const double scale = inverse ? 1 / static_cast<double>(points) : 1;
  for (int64_t column = 0; column < columns; ++column) {
    for (int part = 0; part < 2; ++part) {
      for (int64_t k = 0; k < out.m; ++k) {
        PushTurn(out.second, turn_of(column, k, columns), scale, part);
      }
    }
  }
  return out;
}

// From bins row + rows * i, which are filled up with zeros, to points columns * m + k.
TwoSteps RealInverseSteps(int64_t points) {
  const int64_t rows = RowsOf(points), columns = points / rows, bins = points / 2 + 1;
  TwoSteps out = {(bins + rows - 1) / rows, rows, 2, columns, rows, 1, {}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < out.i; ++i) {
      const int64_t bin = row + rows * i;
      const bool alone = bin == 0 || 2 * bin == points;
      for (int part = 0; part < 2; ++part) {
        const bool counts = bin < bins && !(alone && part == 1);
        const double scale = counts ? (alone ? 1.0 : 2.0) / static_cast<double>(points) : 0.0;
        for (int64_t k = 0; k < columns; ++k) {
          PushTurn(out.first, TurnOf(bin, k, points), scale, part);
        }
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int part = 0; part < 2; ++part) {
      for (int64_t m = 0; m < rows; ++m) {
        PushTurn(out.second, TurnOf(row, m, rows), 1, part, true);
      }
    }
  }
  return out;
}

// The axes of x before its last one, as a vector.
Result<ValueId> LeadingOf(Lowering& b, ValueId x, const std::string& role) {
  const int rank = b.fact(x).shape.rank();
  return b.Sizes(x, 0, rank - 1, role + "/leading");
}

// x [.., i * j * parts] to [.., size], of which there are m * k * results or fewer.
Result<ValueId> AddSteps(Lowering& b, ValueId x, const TwoSteps& s, int64_t size, DType waves,
                         std::string_view name) {
  const std::string role(name), prefix = role.empty() ? "transform" : role;
  const DType dtype = b.fact(x).dtype;
  ONCILLA_ASSIGN(const ValueId leading, LeadingOf(b, x, prefix));
  const auto reshape = [&](ValueId of, std::vector<int64_t> to, const char* what) {
    return b.Add(ReshapeAttrs{}, {of, b.Ints(std::move(to))}, StrCat(prefix, "/", what));
  };
  const auto constant = [&](const std::vector<double>& values, Shape shape, const char* what) {
    return b.Cast(b.Constant(As(waves, std::move(shape), values)), dtype,
                  StrCat(prefix, "/", what));
  };
  ONCILLA_ASSIGN(const ValueId first, constant(s.first, {s.j, s.i * s.parts, s.k * 2}, "columns"));
  ONCILLA_ASSIGN(const ValueId second, constant(s.second, {s.j * 2, s.m * s.results}, "rows"));
  ONCILLA_ASSIGN(x, reshape(x, {-1, s.i, s.j, s.parts}, "points"));
  ONCILLA_ASSIGN(x, b.Transpose(x, {2, 0, 1, 3}, prefix + "/by_column"));
  ONCILLA_ASSIGN(x, reshape(x, {s.j, -1, s.i * s.parts}, "columns_of"));
  ONCILLA_ASSIGN(x, b.Add(MatMulAttrs{}, {x, first}, prefix + "/column_bins"));
  ONCILLA_ASSIGN(x, reshape(x, {s.j, -1, s.k, 2}, "column_pairs"));
  ONCILLA_ASSIGN(x, b.Transpose(x, {1, 2, 0, 3}, prefix + "/by_row"));
  ONCILLA_ASSIGN(x, reshape(x, {-1, s.k, s.j * 2}, "rows_of"));
  ONCILLA_ASSIGN(x, b.Add(MatMulAttrs{}, {x, second}, prefix + "/row_bins"));
  ONCILLA_ASSIGN(x, reshape(x, {-1, s.k, s.m, s.results}, "row_pairs"));
  ONCILLA_ASSIGN(x, b.Transpose(x, {0, 2, 1, 3}, prefix + "/in_order"));
  const int64_t all = s.m * s.k * s.results;
  if (size < all) {
    ONCILLA_ASSIGN(x, reshape(x, {-1, all}, "all"));
    ONCILLA_ASSIGN(
        x, b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({size}), b.Ints({1})}, prefix + "/wanted"));
  }
  ONCILLA_ASSIGN(const ValueId shape,
                 b.Add(ConcatAttrs{.axis = 0}, {leading, b.Ints({size})}, prefix + "/shape"));
  return b.Add(ReshapeAttrs{}, {x, shape}, role);
}

Status CheckBytes(int64_t points, int64_t entries, DType dtype) {
  if (points < 1) return InvalidArgument("there are ", points, " points");
  if (SaturatingMul(entries, BytesOf(dtype)) > kMostFourierBytes) {
    return Unsupported("of ", points, " points");
  }
  return {};
}

}  // namespace

Result<ValueId> AddFourier(Lowering& b, ValueId x, int64_t points, int64_t parts, int64_t bins,
                           bool inverse, DType waves, std::string_view role) {
  const int64_t rows = RowsOf(points);
  if (rows == 0) {
    ONCILLA_TRY(CheckBytes(points, SaturatingMul(SaturatingMul(2 * parts, bins), points), waves));
    const Tensor matrix = FourierMatrix(waves, points, parts, bins, inverse);
    ONCILLA_ASSIGN(const ValueId wide,
                   b.Cast(b.Constant(matrix.Reshaped({points * parts, bins * 2})), b.fact(x).dtype,
                          StrCat(role, "/waves")));
    return b.Add(MatMulAttrs{}, {x, wide}, role);
  }
  ONCILLA_TRY(CheckBytes(points, SaturatingMul(2 * parts * rows, points), waves));
  return AddSteps(b, x, ForwardSteps(points, parts, bins, inverse), bins * 2, waves, role);
}

Result<ValueId> AddRealInverse(Lowering& b, ValueId x, int64_t points, DType waves,
                               std::string_view role) {
  const int64_t rows = RowsOf(points), bins = points / 2 + 1;
  if (rows == 0) {
    ONCILLA_TRY(CheckBytes(points, SaturatingMul(SaturatingMul(2, points), bins), waves));
    const Tensor matrix = RealInverseMatrix(waves, points).Reshaped({2 * bins, points});
    ONCILLA_ASSIGN(const ValueId wide,
                   b.Cast(b.Constant(matrix), b.fact(x).dtype, StrCat(role, "/waves")));
    return b.Add(MatMulAttrs{}, {x, wide}, role);
  }
  ONCILLA_TRY(CheckBytes(points, SaturatingMul(4 * (points / rows), points), waves));
  const TwoSteps steps = RealInverseSteps(points);
  const int64_t more = (steps.i * steps.j - bins) * 2;
  if (more > 0) {
    const int rank = b.fact(x).shape.rank();
    std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
    pads.back() = more;
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, b.Ints(std::move(pads))}, StrCat(role, "/filled")));
  }
  return AddSteps(b, x, steps, points, waves, role);
}

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
