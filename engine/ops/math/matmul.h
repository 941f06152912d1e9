// Attributes and geometry of MatMul, shared by inference and kernels.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// a[.., M, K] times b[.., K, N] with NumPy's rules: batch axes broadcast; a vector a is a row and a
// vector b a column, whose axis is then left out of the result. transpose_a and transpose_b say
// that the last two axes are stored swapped (they are ignored for vectors).
// y = activation(a b + bias[N]? + residual (like y)?); integers wrap around and accept only none,
// relu and relu6.
struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  std::string activation = "none";
  void Fields(auto&& field) {
    field("transpose_a", transpose_a);
    field("transpose_b", transpose_b);
    field("activation", activation);
  }
};

// The shape of a b; unranked if an operand is. Integer products have the same rules.
Result<PartialShape> MatMulShape(const MatMulAttrs& attrs, const Fact& a, const Fact& b);
// Checks that a bias fits the columns of `shape`, the product with b.
Status CheckProductBias(const Fact& bias, const Fact& b, const PartialShape& shape);

// The product as `batch` equal products of two matrices. Strides are in elements; matrix i of an
// operand starts at BatchOffset().
struct MatMulGeometry {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t a_row = 0, a_col = 0;  // from one row (of M) to the next, from one column (of K)
  int64_t b_row = 0, b_col = 0;  // rows are K, columns are N
  Shape batch_dims;
  Shape a_steps, b_steps;  // one per batch axis; 0 where the operand is broadcast

  static int64_t BatchOffset(const Shape& dims, const Shape& steps, int64_t i);
  int64_t a_offset(int64_t i) const { return BatchOffset(batch_dims, a_steps, i); }
  int64_t b_offset(int64_t i) const { return BatchOffset(batch_dims, b_steps, i); }
};

// The geometry of a node that passed inference with all sizes known. Batch axes along which b is
// broadcast are merged into M where a allows it, so that a batch of activations times one matrix is
// one product.
MatMulGeometry GeometryOf(const MatMulAttrs& attrs, const Shape& a, const Shape& b);

}  // namespace oncilla
