// Decompositions and functions of matrices: Eigen's Householder QR, divide-and-conquer SVD,
// symmetric eigensolver, square root and logarithm by Schur form, exponential by Pade
// approximation, in double except for the eigensolver. Only this file and decompose_complex.cc
// include Eigen's headers.
#define EIGEN_MPL2_ONLY
#define EIGEN_NO_DEBUG
#include "backends/cpu/algorithms/decompose.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <unsupported/Eigen/MatrixFunctions>

#include "backends/cpu/algorithms/householder.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

template <class T>
using MatrixOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using Matrix = MatrixOf<double>;

// Reads `count` numbers of an input, from number `first` on. Eigen's functions are compiled only
// for double, because they take minutes to compile, so tensors are converted here and in Write.
void Read(const Args& args, int input, int64_t first, int64_t count, double* numbers) {
  DispatchDType(args.in(input).dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.In<T>(input) + first;
    std::transform(x, x + count, numbers, [](T v) { return static_cast<double>(v); });
  });
}

// `m` row by row as the k-th matrix of an output; 16-bit numbers are rounded from fp32.
void Write(const Matrix& m, const Args& args, int output, int64_t k) {
  DispatchDType(args.out(output).dtype, [&]<class T>(TypeTag<T>) {
    T* y = args.Out<T>(output) + k * m.size();
    for (int64_t i = 0; i < m.rows(); ++i) {
      for (int64_t j = 0; j < m.cols(); ++j) {
        if constexpr (std::is_same_v<T, double>) {
          *y++ = m(i, j);
        } else {
          *y++ = static_cast<T>(static_cast<float>(m(i, j)));
        }
      }
    }
  });
}

// Eigen's iterations terminate only for finite numbers.
Status RequireFinite(const Matrix& m) {
  const bool finite =
      std::all_of(m.data(), m.data() + m.size(), [](double v) { return std::isfinite(v); });
  if (finite) return Status();
  return InvalidArgument("the matrix holds numbers that are not finite");
}

// Applies fn to each square matrix of input 0. If Scalar is complex, pairs of numbers are complex
// ones. The result is NaN for a matrix with a number that is not finite.
template <class Scalar, class F>
Status MapMatrices(const Args& args, F&& fn) {
  constexpr int kParts = sizeof(Scalar) / sizeof(double);
  const Shape x = args.in(0).shape;
  const int rank = x.rank() - (kParts - 1);
  const int64_t size = x[rank - 1], numbers = size * size * kParts;
  const int64_t count = size == 0 ? 0 : x.Product(0, rank - 2);
  for (int64_t k = 0; k < count && !args.threads.ended(); ++k) {
    Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> m(size, size);
    auto* parts = reinterpret_cast<double*>(m.data());
    Read(args, 0, k * numbers, numbers, parts);
    if (std::all_of(parts, parts + numbers, [](double v) { return std::isfinite(v); })) {
      m = fn(MatrixOf<Scalar>(m));
    } else {
      std::fill_n(parts, numbers, std::numeric_limits<double>::quiet_NaN());
    }
    Write(Eigen::Map<const Eigen::RowVectorXd>(parts, numbers), args, 0, k);
  }
  return Status();
}

// Calls fn(which, matrix) for each matrix of input 0.
template <class F>
Status ForEach(const Args& args, F&& fn) {
  const Shape x = args.in(0).shape;
  const int rank = x.rank();
  const int64_t rows = x[rank - 2], columns = x[rank - 1], count = x.Product(0, rank - 2);
  for (int64_t k = 0; k < count && !args.threads.ended(); ++k) {
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> m(rows, columns);
    Read(args, 0, k * rows * columns, rows * columns, m.data());
    const Matrix matrix = m;
    ONCILLA_TRY(RequireFinite(matrix));
    ONCILLA_TRY(fn(k, matrix));
  }
  return Status();
}

// The principal logarithm by inverse scaling and squaring (Kenney and Laub, 1989): square roots of
// the Schur form until it is near the identity, then a Pade approximant. NaN if there is no
// logarithm; Eigen's own function does not terminate for a singular matrix.
using ComplexMatrix = MatrixOf<std::complex<double>>;
ComplexMatrix LogarithmOf(const ComplexMatrix& x) {
  constexpr int kDegree = 7, kMostRoots = 128;
  constexpr double kNear = 0.2642;  // where the approximant of this degree is exact to the last bit
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const ComplexMatrix none = ComplexMatrix::Constant(x.rows(), x.cols(), {kNaN, kNaN});
  if (!x.allFinite()) return none;
  const Eigen::ComplexSchur<ComplexMatrix> schur(x);
  if (schur.info() != Eigen::Success) return none;
  ComplexMatrix t = schur.matrixT().template triangularView<Eigen::Upper>();
  if ((t.diagonal().array() == 0.0).any()) return none;
  const auto identity = ComplexMatrix::Identity(x.rows(), x.cols());
  for (int roots = 0; roots < kMostRoots && t.allFinite(); ++roots) {
    if ((t - identity).cwiseAbs().colwise().sum().maxCoeff() < kNear) {
      ComplexMatrix log;
      Eigen::internal::matrix_log_compute_pade(log, t, kDegree);
      return std::ldexp(1.0, roots) * (schur.matrixU() * log * schur.matrixU().adjoint());
    }
    ComplexMatrix root = ComplexMatrix::Zero(t.rows(), t.cols());
    Eigen::matrix_sqrt_triangular(t, root);
    t = root.template triangularView<Eigen::Upper>();
  }
  return none;
}

}  // namespace

Status Qr(const QrAttrs& attrs, const Args& args) {
  return ForEach(args, [&](int64_t k, const Matrix& x) -> Status {
    const auto [q, r] = FactorQr(x, attrs.full);
    Write(q, args, 0, k);
    Write(r, args, 1, k);
    return Status();
  });
}

Status Svd(const SvdAttrs& attrs, const Args& args) {
  return ForEach(args, [&](int64_t k, const Matrix& x) -> Status {
    const auto size = std::min(x.rows(), x.cols());
    if (size == 0) {
      if (!attrs.vectors || !attrs.full) return Status();
      const Matrix u = Matrix::Identity(x.rows(), x.rows()),
                   v = Matrix::Identity(x.cols(), x.cols());
      Write(u, args, 1, k);
      Write(v, args, 2, k);
      return Status();
    }
    unsigned options = 0;
    if (attrs.vectors) {
      options = attrs.full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                           : Eigen::ComputeThinU | Eigen::ComputeThinV;
    }
    const Eigen::BDCSVD<Matrix> svd(x, options);
    if (svd.info() != Eigen::Success) return InvalidArgument("the decomposition does not converge");
    Write(svd.singularValues(), args, 0, k);
    if (!attrs.vectors) return Status();
    Write(svd.matrixU(), args, 1, k);
    Write(svd.matrixV(), args, 2, k);
    return Status();
  });
}

// The eigensolver runs in the matrix's own precision: the number of rotations, and with it the
// signs of the vectors, depends on it.
template <class Scalar>
Status SymmetricEigenIn(const SymmetricEigenAttrs& attrs, const Args& args) {
  return ForEach(args, [&](int64_t k, const Matrix& x) -> Status {
    if (x.size() == 0) return Status();
    const Eigen::SelfAdjointEigenSolver<MatrixOf<Scalar>> eigen(
        x.template cast<Scalar>(),
        attrs.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (eigen.info() != Eigen::Success) {
      return InvalidArgument("Self-adjoint eigen decomposition was not successful.");
    }
    Write(eigen.eigenvalues().template cast<double>(), args, 0, k);
    if (attrs.vectors) Write(eigen.eigenvectors().template cast<double>(), args, 1, k);
    return Status();
  });
}

Status SymmetricEigen(const SymmetricEigenAttrs& attrs, const Args& args) {
  if (args.in(0).dtype == DType::kF64) return SymmetricEigenIn<double>(attrs, args);
  return SymmetricEigenIn<float>(attrs, args);
}

Status MatrixSquareRoot(const NoAttrs&, const Args& args) {
  return ForEach(args, [&](int64_t k, const Matrix& x) -> Status {
    if (x.size() == 0) return Status();
    // A real matrix has a real square root if its eigenvalues are real or in conjugate pairs and
    // none is negative.
    const Eigen::EigenSolver<Matrix> eigen(x, false);
    if (eigen.info() != Eigen::Success) return InvalidArgument("the eigenvalues do not converge");
    for (const auto& value : eigen.eigenvalues()) {
      if (value.imag() == 0 && value.real() < 0) {
        return InvalidArgument("the matrix has no real square root: an eigenvalue is ",
                               value.real());
      }
    }
    const Matrix root = x.sqrt();
    ONCILLA_TRY(In(RequireFinite(root), "the square root"));
    Write(root, args, 0, k);
    return Status();
  });
}

Status MatrixExponential(const MatrixExponentialAttrs& attrs, const Args& args) {
  const auto exponential = [](const auto& x) { return std::decay_t<decltype(x)>(x.exp()); };
  if (attrs.complex) return MapMatrices<std::complex<double>>(args, exponential);
  return MapMatrices<double>(args, exponential);
}

Status MatrixLogarithm(const NoAttrs&, const Args& args) {
  return MapMatrices<std::complex<double>>(args, [](const auto& x) { return LogarithmOf(x); });
}

}  // namespace oncilla::cpu
