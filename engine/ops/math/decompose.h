// Attributes of decompositions of real matrices in the last two axes; the axes before them are
// batches. Signs of vectors are those of Eigen's algorithms, which TensorFlow's CPU kernels use
// too.
#pragma once

#include "engine/ops/op_def.h"

namespace oncilla {

// Qr(x[.., m, n]) -> q[.., m, k], r[.., k, n] with k = min(m, n), or m if `full`: orthonormal
// columns times an upper triangular matrix.
struct QrAttrs {
  bool full = false;
  void Fields(auto&& field) { field("full", full); }
};

// Svd(x[.., m, n]) -> s[.., k], u[.., m, k], v[.., n, k] with k = min(m, n): x = u diag(s) v^T, s
// descending. `full`: u[.., m, m], v[.., n, n]. Without `vectors` s alone.
struct SvdAttrs {
  bool vectors = true;
  bool full = false;
  void Fields(auto&& field) {
    field("vectors", vectors);
    field("full", full);
  }
};

// SymmetricEigen(x[.., n, n]) -> e[.., n] ascending, v[.., n, n]: x v = v diag(e); only the lower
// triangle of x is read. Without `vectors` e alone.
struct SymmetricEigenAttrs {
  bool vectors = true;
  void Fields(auto&& field) { field("vectors", vectors); }
};

// Lu(x[.., n, n]) -> lu[.., n, n], p[.., n]: row i of L U is row p[i] of x; L has ones on its
// diagonal, which is not stored. A singular matrix fails the run.
struct LuAttrs {
  DType index = DType::kI32;
  void Fields(auto&& field) { field("index", index); }
};

// MatrixSquareRoot(x): the principal root; a matrix that has no real one fails the run.

// MatrixExponential(x[.., n, n]); with `complex` x[.., n, n, 2], real and imaginary parts. Here and
// in MatrixLogarithm, numbers that are not finite give NaN.
struct MatrixExponentialAttrs {
  bool complex = false;
  void Fields(auto&& field) { field("complex", complex); }
};

// MatrixLogarithm(x[.., n, n, 2]): the principal logarithm of complex matrices, NaN where there is
// none.

// DecomposeComplex(x[.., m, n, 2]): decompositions and functions of complex matrices, whose last
// axis is the real and imaginary parts; so it is in the results, where real numbers have the part
// zero. `into` is qr, svd, eigen (of a Hermitian matrix) or lu, which give what the ops on real
// matrices do, with adjoints for transposes; square_root, inverse (of the `adjoint`), determinant;
// log_determinant -> a number of size one, and the logarithm of the size. CPU only.
struct DecomposeComplexAttrs {
  std::string into = "qr";
  bool full = false;          // of qr and svd
  bool vectors = true;        // of svd and eigen
  bool adjoint = false;       // of inverse
  DType index = DType::kI32;  // of lu
  void Fields(auto&& field) {
    field("into", into);
    field("full", full);
    field("vectors", vectors);
    field("adjoint", adjoint);
    field("index", index);
  }
};

}  // namespace oncilla
