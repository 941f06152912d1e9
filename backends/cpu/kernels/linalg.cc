// Linear algebra on the CPU: textbook elimination with partial pivoting, in double, one matrix at a
// time. It is meant for the small matrices of models; nothing is blocked for caches.
#include "engine/ops/math/linalg.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/algorithms/decompose.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/rules.h"

namespace oncilla::cpu {
namespace {

template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

// A row-major matrix of doubles.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), data(static_cast<size_t>(r * c)) {}
  double* operator[](int64_t i) { return data.data() + i * columns; }
  const double* operator[](int64_t i) const { return data.data() + i * columns; }
};

template <class T>
Matrix Read(const T* x, int64_t rows, int64_t columns, bool transpose = false) {
  Matrix m(transpose ? columns : rows, transpose ? rows : columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      (transpose ? m[j][i] : m[i][j]) = static_cast<double>(x[i * columns + j]);
    }
  }
  return m;
}

template <class T>
void Write(const Matrix& m, T* y) {
  for (size_t i = 0; i < m.data.size(); ++i) y[i] = To<T>(m.data[i]);
}

// Factorises P a = L U in place. Gives the order of rows and the sign of the permutation. Returns
// false when a pivot is zero; elimination then goes on past it.
bool Factorise(Matrix& a, std::vector<int64_t>& order, int* sign, const Threads& threads) {
  const int64_t n = a.rows;
  order.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  bool regular = true;
  *sign = 1;
  Lookout look(threads);
  for (int64_t k = 0; k < n && !look.Ended((n - k) * (n - k)); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::fabs(a[i][k]) > std::fabs(a[best][k])) best = i;
    }
    if (best != k) {
      std::swap_ranges(a[k], a[k] + n, a[best]);
      std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(best)]);
      *sign = -*sign;
    }
    if (a[k][k] == 0) {
      regular = false;
      continue;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const double f = a[i][k] /= a[k][k];
      if (f == 0) continue;
      for (int64_t j = k + 1; j < n; ++j) a[i][j] -= f * a[k][j];
    }
  }
  return regular;
}

// Solves in place of b with a lower triangle (whose diagonal is ones if `unit`), or an upper one.
void Forward(const Matrix& a, bool unit, Matrix& b, const Threads& threads) {
  Lookout look(threads);
  for (int64_t i = 0; i < b.rows && !look.Ended(i * b.columns); ++i) {
    for (int64_t k = 0; k < i; ++k) {
      const double f = a[i][k];
      if (f == 0) continue;
      for (int64_t j = 0; j < b.columns; ++j) b[i][j] -= f * b[k][j];
    }
    if (unit) continue;
    for (int64_t j = 0; j < b.columns; ++j) b[i][j] /= a[i][i];
  }
}
void Backward(const Matrix& a, bool unit, Matrix& b, const Threads& threads) {
  Lookout look(threads);
  for (int64_t i = b.rows; i-- > 0 && !look.Ended((b.rows - i) * b.columns);) {
    for (int64_t k = i + 1; k < b.rows; ++k) {
      const double f = a[i][k];
      if (f == 0) continue;
      for (int64_t j = 0; j < b.columns; ++j) b[i][j] -= f * b[k][j];
    }
    if (unit) continue;
    for (int64_t j = 0; j < b.columns; ++j) b[i][j] /= a[i][i];
  }
}

// b := a^-1 b.
Status Solve(Matrix a, Matrix& b, const Threads& threads) {
  std::vector<int64_t> order;
  int sign = 0;
  if (!Factorise(a, order, &sign, threads))
    return InvalidArgument("Input matrix is not invertible.");
  Matrix permuted(b.rows, b.columns);
  for (int64_t i = 0; i < b.rows; ++i) {
    std::copy_n(b[order[static_cast<size_t>(i)]], b.columns, permuted[i]);
  }
  Forward(a, true, permuted, threads);
  Backward(a, false, permuted, threads);
  b = std::move(permuted);
  return Status();
}

// Calls fn(T{}, index of the matrix) for each matrix of the first input, for floating-point types.
template <class F>
Status ForMatrices(const Args& args, int64_t batches, F&& fn) {
  Status status;
  Lookout look(args.threads);
  const int64_t size = args.in(0).shape.back();
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (!std::is_integral_v<T>) {
      for (int64_t m = 0; m < batches && status.ok() && !look.Ended(size * size); ++m) {
        status = fn(tag, m);
      }
    }
  });
  return status;
}

int64_t BatchesOf(const Shape& shape) { return shape.Product(0, shape.rank() - 2); }

Status Cholesky(const NoAttrs&, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    Matrix a = Read(args.In<T>(0) + m * n * n, n, n);
    bool positive = true;
    Lookout look(args.threads);
    for (int64_t j = 0; j < n && !look.Ended((n - j) * j); ++j) {
      for (int64_t i = j; i < n; ++i) {
        double sum = a[i][j];
        for (int64_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
        if (i == j && !(sum > 0)) positive = false;
        a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
      }
      std::fill(a[j] + j + 1, a[j] + n, 0.0);
    }
    for (int64_t i = 0; i < n && !positive; ++i) std::fill_n(a[i], i + 1, NAN);
    Write(a, args.Out<T>(0) + m * n * n);
    return Status();
  });
}

Status MatrixInverse(const MatrixSolveAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    Matrix b(n, n);
    for (int64_t i = 0; i < n; ++i) b[i][i] = 1;
    ONCILLA_TRY(Solve(Read(args.In<T>(0) + m * n * n, n, n, attrs.transpose), b, args.threads));
    Write(b, args.Out<T>(0) + m * n * n);
    return Status();
  });
}

Status MatrixSolve(const MatrixSolveAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back(), columns = args.in(1).shape.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    Matrix b = Read(args.In<T>(1) + m * n * columns, n, columns);
    ONCILLA_TRY(Solve(Read(args.In<T>(0) + m * n * n, n, n, attrs.transpose), b, args.threads));
    Write(b, args.Out<T>(0) + m * n * columns);
    return Status();
  });
}

// The sign of a determinant and the logarithm of its magnitude.
std::pair<double, double> LogDeterminantOf(Matrix a, const Threads& threads) {
  std::vector<int64_t> order;
  int sign = 0;
  Factorise(a, order, &sign, threads);
  double product = sign, log = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    const double d = a[i][i];
    product *= d > 0 ? 1 : d < 0 ? -1 : d;
    log += std::log(std::fabs(d));
  }
  return {product, log};
}

Status MatrixDeterminant(const NoAttrs&, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    Matrix a = Read(args.In<T>(0) + m * n * n, n, n);
    std::vector<int64_t> order;
    int sign = 0;
    Factorise(a, order, &sign, args.threads);
    double product = sign;
    for (int64_t i = 0; i < n; ++i) product *= a[i][i];
    args.Out<T>(0)[m] = To<T>(product);
    return Status();
  });
}

Status LogDeterminant(const NoAttrs&, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    const auto [sign, log] = LogDeterminantOf(Read(args.In<T>(0) + m * n * n, n, n), args.threads);
    args.Out<T>(0)[m] = To<T>(sign);
    args.Out<T>(1)[m] = To<T>(log);
    return Status();
  });
}

Status Lu(const LuAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    Matrix a = Read(args.In<T>(0) + m * n * n, n, n);
    std::vector<int64_t> order;
    int sign = 0;
    if (!Factorise(a, order, &sign, args.threads)) {
      return InvalidArgument("Input is not invertible.");
    }
    Write(a, args.Out<T>(0) + m * n * n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = order[static_cast<size_t>(i)];
      if (attrs.index == DType::kI32) {
        args.Out<int32_t>(1)[m * n + i] = static_cast<int32_t>(row);
      } else {
        args.Out<int64_t>(1)[m * n + i] = row;
      }
    }
    return Status();
  });
}

Status TriangularSolve(const TriangularSolveAttrs& attrs, const Args& args) {
  const Shape a = args.in(0).shape, b = args.in(1).shape, y = args.out(0).shape;
  const int64_t n = a.back(), columns = b.back();
  auto batches = [](const Shape& s) { return Shape(s.begin(), s.end() - 2); };
  const std::vector<Shape> shapes = {batches(a), batches(b)};
  const BroadcastAxes axes = MergeBroadcast(batches(y), shapes);
  return ForMatrices(args, axes.elements, [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    int64_t at[2] = {}, left = m;
    for (int axis = axes.rank; axis-- > 0; left /= axes.sizes[static_cast<size_t>(axis)]) {
      const auto i = static_cast<size_t>(axis);
      for (size_t k = 0; k < 2; ++k) at[k] += left % axes.sizes[i] * axes.strides[k][i];
    }
    const Matrix matrix = Read(args.In<T>(0) + at[0] * n * n, n, n, attrs.transpose);
    Matrix x = Read(args.In<T>(1) + at[1] * n * columns, n, columns);
    if (attrs.lower != attrs.transpose) {
      Forward(matrix, attrs.unit_diagonal, x, args.threads);
    } else {
      Backward(matrix, attrs.unit_diagonal, x, args.threads);
    }
    Write(x, args.Out<T>(0) + m * n * columns);
    return Status();
  });
}

Status TridiagonalSolve(const TridiagonalSolveAttrs&, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t n = x.back(), columns = args.in(1).shape.back();
  return ForMatrices(args, BatchesOf(x), [&]<class T>(TypeTag<T>, int64_t m) -> Status {
    const Matrix d = Read(args.In<T>(0) + m * 3 * n, 3, n);
    Matrix b = Read(args.In<T>(1) + m * n * columns, n, columns);
    // A row is (diagonal, above, second above). Elimination goes down the rows; two rows are
    // swapped where the number below the diagonal is larger, which fills the second diagonal above.
    Matrix rows(n, 3);
    for (int64_t i = 0; i < n; ++i) {
      rows[i][0] = d[1][i];
      rows[i][1] = i + 1 < n ? d[0][i] : 0;
    }
    for (int64_t i = 0; i + 1 < n; ++i) {
      double below[3] = {d[2][i + 1], rows[i + 1][0], rows[i + 1][1]};
      if (std::fabs(below[0]) > std::fabs(rows[i][0])) {
        std::swap_ranges(below, below + 3, rows[i]);
        std::swap_ranges(b[i], b[i] + columns, b[i + 1]);
      }
      if (rows[i][0] == 0) return InvalidArgument("Input matrix is not invertible.");
      const double f = below[0] / rows[i][0];
      rows[i + 1][0] = below[1] - f * rows[i][1];
      rows[i + 1][1] = below[2] - f * rows[i][2];
      for (int64_t j = 0; j < columns; ++j) b[i + 1][j] -= f * b[i][j];
    }
    if (n > 0 && rows[n - 1][0] == 0) return InvalidArgument("Input matrix is not invertible.");
    for (int64_t i = n; i-- > 0;) {
      for (int64_t j = 0; j < columns; ++j) {
        double v = b[i][j];
        if (i + 1 < n) v -= rows[i][1] * b[i + 1][j];
        if (i + 2 < n) v -= rows[i][2] * b[i + 2][j];
        b[i][j] = v / rows[i][0];
      }
    }
    Write(b, args.Out<T>(0) + m * n * columns);
    return Status();
  });
}

Status SparseMatMul(const SparseMatMulAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto shape, args.Ints(2, "shape"));
  const Shape b = args.in(3).shape, y = args.out(0).shape;
  const int64_t nonzero = args.in(1).elements(), columns = y[1];
  const auto at = ReadInts(args.inputs[0], args.in(0).dtype, args.in(0).elements());
  if (args.in(0).shape != Shape({nonzero, 2})) {
    return InvalidArgument("indices ", args.in(0).shape, " for ", nonzero, " values");
  }
  if (b[attrs.transpose_b ? 1 : 0] != shape[attrs.transpose_a ? 0 : 1]) {
    return InvalidArgument("a matrix of ", shape[0], " by ", shape[1], " does not fit b ", b);
  }
  for (int64_t i = 0; i < nonzero; ++i) {
    for (int k = 0; k < 2; ++k) {
      const int64_t index = at[static_cast<size_t>(2 * i + k)];
      if (index < 0 || index >= shape[static_cast<size_t>(k)]) {
        return IndexError(index, k, shape[static_cast<size_t>(k)]);
      }
    }
  }
  DispatchDType(args.in(1).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      using W = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
      std::vector<W> sums(static_cast<size_t>(y.elements()));
      Lookout look(args.threads);
      for (int64_t i = 0; i < nonzero && !look.Ended(columns); ++i) {
        const int64_t row = at[static_cast<size_t>(2 * i + (attrs.transpose_a ? 1 : 0))];
        const int64_t k = at[static_cast<size_t>(2 * i + (attrs.transpose_a ? 0 : 1))];
        const auto value = static_cast<W>(args.In<T>(1)[i]);
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t place = attrs.transpose_b ? j * b[1] + k : k * columns + j;
          sums[static_cast<size_t>(row * columns + j)] +=
              value * static_cast<W>(args.In<T>(3)[place]);
        }
      }
      for (size_t i = 0; i < sums.size(); ++i) {
        if constexpr (std::is_integral_v<T>) {
          args.Out<T>(0)[i] = static_cast<T>(sums[i]);
        } else {
          args.Out<T>(0)[i] = To<T>(sums[i]);
        }
      }
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Cholesky>("Cholesky", kFloats),
    Row<MatrixInverse>("MatrixInverse", kFloats),
    Row<MatrixDeterminant>("MatrixDeterminant", kFloats),
    Row<LogDeterminant>("LogDeterminant", kFloats),
    Row<MatrixSolve>("MatrixSolve", kFloats),
    Row<TriangularSolve>("TriangularSolve", kFloats),
    Row<TridiagonalSolve>("TridiagonalSolve", kFloats),
    Row<SparseMatMul>("SparseMatMul", kIntegers),
    Row<Qr>("Qr", kFloats),
    Row<Svd>("Svd", kFloats),
    Row<SymmetricEigen>("SymmetricEigen", kFloats),
    Row<Lu>("Lu", kFloats),
    Row<MatrixSquareRoot>("MatrixSquareRoot", kFloats),
    Row<MatrixExponential>("MatrixExponential", kFloats),
    Row<MatrixLogarithm>("MatrixLogarithm", kFloats),
    Row<DecomposeComplex>("DecomposeComplex", kFloats),
};

}  // namespace

std::span<const KernelRow> LinalgKernels() { return kRows; }

}  // namespace oncilla::cpu
