// Attributes of linear algebra on the last two axes: systems, inverses, determinants, factors; and
// the product with a sparse matrix. Floating point; the axes before them are batches.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Cholesky(x): the lower factor of a symmetric positive definite matrix, of which only the lower
// triangle is read; all NaN if it is not positive definite. MatrixDeterminant(x); LogDeterminant(x)
// -> its sign, the logarithm of its magnitude. None has attributes. A singular matrix fails the run
// of MatrixInverse and MatrixSolve.

// MatrixInverse(x), MatrixSolve(a, b): x[n, m] with a x = b; `transpose` transposes the matrix.
struct MatrixSolveAttrs {
  bool transpose = false;
  void Fields(auto&& field) { field("transpose", transpose); }
};

// TriangularSolve(a, b): only the named triangle of a is read. Batches broadcast. With
// unit_diagonal the diagonal of a is taken as ones. A zero on the diagonal gives infinities.
struct TriangularSolveAttrs {
  bool lower = true;
  bool transpose = false;
  bool unit_diagonal = false;
  void Fields(auto&& field) {
    field("lower", lower);
    field("transpose", transpose);
    field("unit_diagonal", unit_diagonal);
  }
};

// TridiagonalSolve(diagonals[.., 3, n], b[.., n, m]): the diagonals are the one above, the main one
// and the one below; the last number of the first and the first number of the third are not read.
struct TridiagonalSolveAttrs {
  bool pivoting = true;
  void Fields(auto&& field) { field("pivoting", pivoting); }
};

// SparseMatMul(indices[n, 2], values[n], *shape[2], b): the product of a sparse matrix, where
// values with equal indices are added, with a dense one.
struct SparseMatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  void Fields(auto&& field) {
    field("transpose_a", transpose_a);
    field("transpose_b", transpose_b);
  }
};

}  // namespace oncilla
