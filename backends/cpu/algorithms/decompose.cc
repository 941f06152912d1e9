// Decompositions and functions of matrices: Eigen's Householder QR, divide-and-conquer SVD,
// symmetric eigensolver, square root and logarithm by Schur form, exponential by Pade
// approximation, in double except for the eigensolver. No other file includes Eigen's headers.
#define EIGEN_MPL2_ONLY
#define EIGEN_NO_DEBUG
#include "backends/cpu/algorithms/decompose.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <unsupported/Eigen/MatrixFunctions>

#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

template <class T>
using MatrixOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using Matrix = MatrixOf<double>;

template <class T>
Matrix Read(const T* x, int64_t rows, int64_t columns) {
  Matrix m(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) m(i, j) = static_cast<double>(x[i * columns + j]);
  }
  return m;
}

template <class M, class T>
void Write(const M& m, T* y) {
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) {
      if constexpr (std::is_same_v<T, double>) {
        *y++ = static_cast<double>(m(i, j));
      } else {
        *y++ = static_cast<T>(static_cast<float>(m(i, j)));
      }
    }
  }
}

// Eigen's iterations terminate only for finite numbers.
Status RequireFinite(const Matrix& m) {
  const bool finite =
      std::all_of(m.data(), m.data() + m.size(), [](double v) { return std::isfinite(v); });
  if (finite) return Status();
  return InvalidArgument("the matrix holds numbers that are not finite");
}

// fn(matrix) for each square matrix of input 0, pairs of whose numbers are complex ones if Scalar
// is; NaN where one is not finite.
template <class Scalar, class F>
Status MapMatrices(const Args& args, F&& fn) {
  constexpr int kParts = sizeof(Scalar) / sizeof(double);
  const Shape x = args.in(0).shape;
  const int rank = x.rank() - (kParts - 1);
  const int64_t size = x[rank - 1], numbers = size * size * kParts;
  const int64_t count = size == 0 ? 0 : x.Product(0, rank - 2);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      for (int64_t k = 0; k < count && !args.threads.ended(); ++k) {
        Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> m(size, size);
        auto* parts = reinterpret_cast<double*>(m.data());
        const T* in = args.In<T>(0) + k * numbers;
        std::transform(in, in + numbers, parts, [](T v) { return static_cast<double>(v); });
        if (std::all_of(parts, parts + numbers, [](double v) { return std::isfinite(v); })) {
          m = fn(MatrixOf<Scalar>(m));
        } else {
          std::fill_n(parts, numbers, std::numeric_limits<double>::quiet_NaN());
        }
        Write(Eigen::Map<const Eigen::RowVectorXd>(parts, numbers), args.Out<T>(0) + k * numbers);
      }
    }
  });
  return Status();
}

// Calls fn(T{}, which, matrix) for each matrix of input 0.
template <class F>
Status ForEach(const Args& args, F&& fn) {
  const Shape x = args.in(0).shape;
  const int rank = x.rank();
  const int64_t rows = x[rank - 2], columns = x[rank - 1], count = x.Product(0, rank - 2);
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (!std::is_integral_v<T>) {
      for (int64_t k = 0; k < count && status.ok() && !args.threads.ended(); ++k) {
        const Matrix m = Read(args.In<T>(0) + k * rows * columns, rows, columns);
        status = RequireFinite(m);
        if (status.ok()) status = fn(tag, k, m);
      }
    }
  });
  return status;
}

// The principal logarithm by inverse scaling and squaring (Kenney and Laub, 1989): square roots of
// the Schur form until it is near the identity, then a Pade approximant. NaN where there is none:
// Eigen's own function takes roots of a singular matrix for ever.
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
  return ForEach(args, [&]<class T>(TypeTag<T>, int64_t k, const Matrix& x) -> Status {
    const auto size = attrs.full ? x.rows() : std::min(x.rows(), x.cols());
    Matrix q = Matrix::Identity(x.rows(), size), r = Matrix::Zero(size, x.cols());
    if (x.size() > 0) {
      const Eigen::HouseholderQR<Matrix> qr(x);
      q = qr.householderQ() * q;
      for (int64_t i = 0; i < std::min(size, x.cols()); ++i) {
        for (int64_t j = i; j < x.cols(); ++j) r(i, j) = qr.matrixQR()(i, j);
      }
    }
    Write(q, args.Out<T>(0) + k * q.size());
    Write(r, args.Out<T>(1) + k * r.size());
    return Status();
  });
}

Status Svd(const SvdAttrs& attrs, const Args& args) {
  return ForEach(args, [&]<class T>(TypeTag<T>, int64_t k, const Matrix& x) -> Status {
    const auto size = std::min(x.rows(), x.cols());
    if (size == 0) {
      if (!attrs.vectors || !attrs.full) return Status();
      const Matrix u = Matrix::Identity(x.rows(), x.rows()),
                   v = Matrix::Identity(x.cols(), x.cols());
      Write(u, args.Out<T>(1) + k * u.size());
      Write(v, args.Out<T>(2) + k * v.size());
      return Status();
    }
    unsigned options = 0;
    if (attrs.vectors) {
      options = attrs.full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                           : Eigen::ComputeThinU | Eigen::ComputeThinV;
    }
    const Eigen::BDCSVD<Matrix> svd(x, options);
    if (svd.info() != Eigen::Success) return InvalidArgument("the decomposition does not converge");
    Write(svd.singularValues(), args.Out<T>(0) + k * size);
    if (!attrs.vectors) return Status();
    Write(svd.matrixU(), args.Out<T>(1) + k * svd.matrixU().size());
    Write(svd.matrixV(), args.Out<T>(2) + k * svd.matrixV().size());
    return Status();
  });
}

Status SymmetricEigen(const SymmetricEigenAttrs& attrs, const Args& args) {
  return ForEach(args, [&]<class T>(TypeTag<T>, int64_t k, const Matrix& x) -> Status {
    if (x.size() == 0) return Status();
    // The eigensolver runs in the matrix's own precision: the number of rotations, and with it the
    // signs of the vectors, depends on it.
    using Own = MatrixOf<std::conditional_t<std::is_same_v<T, double>, double, float>>;
    const Eigen::SelfAdjointEigenSolver<Own> eigen(
        x.template cast<typename Own::Scalar>(),
        attrs.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (eigen.info() != Eigen::Success) {
      return InvalidArgument("Self-adjoint eigen decomposition was not successful.");
    }
    Write(eigen.eigenvalues(), args.Out<T>(0) + k * x.rows());
    if (attrs.vectors) Write(eigen.eigenvectors(), args.Out<T>(1) + k * x.size());
    return Status();
  });
}

Status MatrixSquareRoot(const NoAttrs&, const Args& args) {
  return ForEach(args, [&]<class T>(TypeTag<T>, int64_t k, const Matrix& x) -> Status {
    if (x.size() == 0) return Status();
    // A real matrix has a real square root where its eigenvalues are real or in conjugate pairs and
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
    Write(root, args.Out<T>(0) + k * x.size());
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
