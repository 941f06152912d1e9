// Decompositions and functions of complex matrices by Eigen's algorithms, in double except for the
// eigensolver.
#define EIGEN_MPL2_ONLY
#define EIGEN_NO_DEBUG
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <cmath>
#include <complex>
#include <unsupported/Eigen/MatrixFunctions>

#include "backends/cpu/algorithms/decompose.h"
#include "backends/cpu/algorithms/householder.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Number = std::complex<double>;
using Matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;

Matrix Read(const Args& args, int64_t k, int64_t rows, int64_t columns) {
  Matrix m(rows, columns);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      const T* x = args.In<T>(0) + k * rows * columns * 2;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j, x += 2) {
          m(i, j) = Number(static_cast<double>(x[0]), static_cast<double>(x[1]));
        }
      }
    }
  });
  return m;
}

// `m` row by row as the k-th matrix of an output.
void Write(const Matrix& m, const Args& args, int output, int64_t k) {
  DispatchDType(args.out(output).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      T* y = args.Out<T>(output) + k * m.size() * 2;
      for (int64_t i = 0; i < m.rows(); ++i) {
        for (int64_t j = 0; j < m.cols(); ++j) {
          *y++ = static_cast<T>(m(i, j).real());
          *y++ = static_cast<T>(m(i, j).imag());
        }
      }
    }
  });
}
void Write(Number number, const Args& args, int output, int64_t k) {
  Write(Matrix::Constant(1, 1, number), args, output, k);
}

// Eigen's iterations terminate only for finite numbers.
Status RequireFinite(const Matrix& m) {
  if (m.allFinite()) return Status();
  return InvalidArgument("the matrix holds numbers that are not finite");
}

void WriteQr(const DecomposeComplexAttrs& attrs, const Matrix& x, const Args& args, int64_t k) {
  const auto [q, r] = FactorQr(x, attrs.full);
  Write(q, args, 0, k);
  Write(r, args, 1, k);
}

Status WriteSvd(const DecomposeComplexAttrs& attrs, const Matrix& x, const Args& args, int64_t k) {
  if (x.size() == 0) {
    if (!attrs.vectors || !attrs.full) return Status();
    Write(Matrix(Matrix::Identity(x.rows(), x.rows())), args, 1, k);
    Write(Matrix(Matrix::Identity(x.cols(), x.cols())), args, 2, k);
    return Status();
  }
  unsigned options = 0;
  if (attrs.vectors) {
    options = attrs.full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                         : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  const Eigen::BDCSVD<Matrix> svd(x, options);
  if (svd.info() != Eigen::Success) return InvalidArgument("the decomposition does not converge");
  Write(Matrix(svd.singularValues().cast<Number>()), args, 0, k);
  if (!attrs.vectors) return Status();
  Write(svd.matrixU(), args, 1, k);
  Write(svd.matrixV(), args, 2, k);
  return Status();
}

// In the matrix's own precision, on which the number of rotations and so the phases depend.
template <class Part>
Status WriteEigen(const DecomposeComplexAttrs& attrs, const Matrix& x, const Args& args,
                  int64_t k) {
  if (x.size() == 0) return Status();
  using Own = Eigen::Matrix<std::complex<Part>, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::SelfAdjointEigenSolver<Own> eigen(
      x.template cast<std::complex<Part>>(),
      attrs.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (eigen.info() != Eigen::Success) {
    return InvalidArgument("Self-adjoint eigen decomposition was not successful.");
  }
  Write(Matrix(eigen.eigenvalues().template cast<Number>()), args, 0, k);
  if (attrs.vectors) Write(Matrix(eigen.eigenvectors().template cast<Number>()), args, 1, k);
  return Status();
}

Status RequirePivots(const Matrix& lu) {
  const bool singular = lu.size() > 0 && !(lu.diagonal().cwiseAbs().minCoeff() > 0);
  return singular ? InvalidArgument("Input is not invertible.") : Status();
}

Status WriteLu(const Matrix& x, const Args& args, int64_t k) {
  if (x.size() == 0) return Status();
  const Eigen::PartialPivLU<Matrix> lu(x);
  ONCILLA_TRY(RequirePivots(lu.matrixLU()));
  Write(lu.matrixLU(), args, 0, k);
  const auto n = x.rows();
  const Eigen::PermutationMatrix<Eigen::Dynamic> rows(lu.permutationP().transpose());
  DispatchDType(args.out(1).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < n; ++i) args.Out<T>(1)[k * n + i] = static_cast<T>(rows.indices()[i]);
    }
  });
  return Status();
}

// The determinant as a number of size one and the logarithm of its size, which does not overflow.
std::pair<Number, double> LogDeterminantOf(const Matrix& x) {
  if (x.size() == 0) return {1, 0};
  const Eigen::PartialPivLU<Matrix> lu(x);
  Number sign = static_cast<double>(lu.permutationP().determinant());
  double log = 0;
  for (const Number pivot : lu.matrixLU().diagonal()) {
    const double size = std::abs(pivot);
    sign *= size == 0 ? Number(0) : pivot / size;
    log += std::log(size);
  }
  return {sign, log};
}

Status WriteInverse(const DecomposeComplexAttrs& attrs, const Matrix& x, const Args& args,
                    int64_t k) {
  if (x.size() == 0) return Status();
  const Eigen::PartialPivLU<Matrix> lu(attrs.adjoint ? Matrix(x.adjoint()) : x);
  ONCILLA_TRY(RequirePivots(lu.matrixLU()));
  Write(Matrix(lu.inverse()), args, 0, k);
  return Status();
}

Status WriteRoot(const Matrix& x, const Args& args, int64_t k) {
  if (x.size() == 0) return Status();
  const Matrix root = x.sqrt();
  ONCILLA_TRY(In(RequireFinite(root), "the square root"));
  Write(root, args, 0, k);
  return Status();
}

}  // namespace

Status DecomposeComplex(const DecomposeComplexAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape;
  const int rank = x.rank() - 1;
  const int64_t rows = x[rank - 2], columns = x[rank - 1], count = x.Product(0, rank - 2);
  const bool wide = args.in(0).dtype == DType::kF64;
  const std::string& into = attrs.into;
  for (int64_t k = 0; k < count && !args.threads.ended(); ++k) {
    const Matrix m = Read(args, k, rows, columns);
    if (into == "determinant" || into == "log_determinant") {
      const auto [sign, log] = LogDeterminantOf(m);
      const bool product = into == "determinant";
      Write(product ? sign * std::exp(log) : sign, args, 0, k);
      if (!product) Write(Number(log), args, 1, k);
      continue;
    }
    ONCILLA_TRY(RequireFinite(m));
    if (into == "qr") WriteQr(attrs, m, args, k);
    if (into == "svd") ONCILLA_TRY(WriteSvd(attrs, m, args, k));
    if (into == "eigen" && wide) ONCILLA_TRY(WriteEigen<double>(attrs, m, args, k));
    if (into == "eigen" && !wide) ONCILLA_TRY(WriteEigen<float>(attrs, m, args, k));
    if (into == "lu") ONCILLA_TRY(WriteLu(m, args, k));
    if (into == "inverse") ONCILLA_TRY(WriteInverse(attrs, m, args, k));
    if (into == "square_root") ONCILLA_TRY(WriteRoot(m, args, k));
  }
  return Status();
}

}  // namespace oncilla::cpu
