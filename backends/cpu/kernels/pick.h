// Pick: a new tensor made of slices of others, numbers and strings alike. Ops on sparse and ragged
// tensors reduce to it once they know which slice goes where.
#pragma once

#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/tensor.h"

namespace oncilla::cpu {

// Slices of `inner` elements: slice i of the result is slice at[i] of `from`, or, if that is -1,
// `otherwise`, which has one element or one slice (absent: zeros).
Result<Tensor> Pick(const Tensor& from, const IntList& at, int64_t inner, Shape shape,
                    const Tensor* otherwise = nullptr);

// Integers of any width; one above the range of int64 becomes the largest int64.
IntList IntsOf(const Tensor& tensor);
// Integers as a tensor of a dtype, which must be able to represent them.
Result<Tensor> IntTensor(DType dtype, Shape shape, std::span<const int64_t> values);

}  // namespace oncilla::cpu
