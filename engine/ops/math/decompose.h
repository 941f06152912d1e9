// Attributes of decompositions of real matrices in the last two axes; batches are the axes in
// front. Signs of vectors are those that Eigen's algorithms give, on which TensorFlow's CPU relies
// too.
#pragma once

#include "engine/ops/op_def.h"

namespace oncilla {

// Qr(x[.., m, n]) -> q[.., m, k], r[.., k, n] with k = min(m, n), or m if `full`: orthonormal
// columns times an upper triangle.
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

// SymmetricEigen(x[.., n, n]) -> e[.., n] ascending, v[.., n, n]: x v = v diag(e), of which only
// the lower triangle is read. Without `vectors` e alone.
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

// MatrixExponential(x[.., n, n]); with `complex` x[.., n, n, 2], real and imaginary parts. Numbers
// that are not finite give NaN, here and of MatrixLogarithm.
struct MatrixExponentialAttrs {
  bool complex = false;
  void Fields(auto&& field) { field("complex", complex); }
};

// MatrixLogarithm(x[.., n, n, 2]): the principal logarithm of complex matrices, NaN where there is
// none.

}  // namespace oncilla
