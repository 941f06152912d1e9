// Sums and products of two tensors of bytes as nodes on floats that give bytes. Kernels compute
// each in one pass over the tensors.
#pragma once

#include <vector>

#include "engine/passes/rewrite.h"
#include "engine/tensor/scalar.h"

namespace oncilla {

class ByteExpression {
 public:
  // The nodes are written in the place of `from`.
  ByteExpression(Patch& patch, std::vector<NodeId> from) : patch_(patch), from_(std::move(from)) {}

  // a * a_factor + (b * b_factor + offset), where each sum is rounded once.
  Result<ValueId> Sum(ValueId a, float a_factor, ValueId b, float b_factor, float offset) {
    ONCILLA_ASSIGN(const ValueId x, Real(a));
    ONCILLA_ASSIGN(const ValueId y, Real(b));
    ONCILLA_ASSIGN(const ValueId inner,
                   patch_.Add("Fma", {}, {y, Number(b_factor), Number(offset)}, from_));
    return patch_.Add("Fma", {}, {x, Number(a_factor), inner}, from_);
  }

  // (a - a_zero) * (b - b_zero) * factor + zero, where each operation rounds.
  Result<ValueId> Product(ValueId a, float a_zero, ValueId b, float b_zero, float factor,
                          float zero) {
    ONCILLA_ASSIGN(const ValueId x, Raised(a, a_zero));
    ONCILLA_ASSIGN(const ValueId y, Raised(b, b_zero));
    ONCILLA_ASSIGN(ValueId product, patch_.Add("Mul", {}, {x, y}, from_));
    ONCILLA_ASSIGN(product, patch_.Add("Mul", {}, {product, Number(factor)}, from_));
    if (zero == 0) return product;
    return patch_.Add("Add", {}, {product, Number(zero)}, from_);
  }

  // The nearest integers, ties to even, within [least, most].
  Result<ValueId> Bytes(ValueId real, DType to, float least, float most) {
    ONCILLA_ASSIGN(ValueId y, patch_.Add("Round", {}, {real}, from_));
    const std::vector<ValueId> bounded = {y, Number(least), Number(most)};
    ONCILLA_ASSIGN(y, patch_.Add("Clip", {}, bounded, from_));
    return patch_.Add("Cast", {{"to", to}}, {y}, from_);
  }

 private:
  Result<ValueId> Real(ValueId integers) {
    return patch_.Add("Cast", {{"to", DType::kF32}}, {integers}, from_);
  }
  Result<ValueId> Raised(ValueId integers, float zero) {
    ONCILLA_ASSIGN(const ValueId real, Real(integers));
    if (zero == 0) return real;
    return patch_.Add("Sub", {}, {real, Number(zero)}, from_);
  }
  ValueId Number(float value) { return patch_.AddConstant(Tensor::Scalar(value)); }

  Patch& patch_;
  const std::vector<NodeId> from_;  // the last one first
};

}  // namespace oncilla
