// The QR decomposition of matrices of real and of complex numbers. Includes Eigen's headers.
#pragma once

#include <Eigen/QR>
#include <algorithm>

namespace oncilla::cpu {

template <class Matrix>
struct QrFactors {
  Matrix q, r;
};

// x = q r with reflections; q is square if `full`, else as wide as x where x is tall.
template <class Matrix>
QrFactors<Matrix> FactorQr(const Matrix& x, bool full) {
  const auto size = full ? x.rows() : std::min(x.rows(), x.cols());
  QrFactors<Matrix> out = {Matrix::Identity(x.rows(), size), Matrix::Zero(size, x.cols())};
  if (x.size() == 0) return out;
  const Eigen::HouseholderQR<Matrix> qr(x);
  out.q = qr.householderQ() * out.q;
  out.r = qr.matrixQR().topRows(size).template triangularView<Eigen::Upper>();
  return out;
}

}  // namespace oncilla::cpu
