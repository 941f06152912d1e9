// Pick: a new tensor out of slices of others, numbers and strings alike. What ops on sparse and
// ragged tensors come down to once they know what goes where.
#pragma once

#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/tensor.h"

namespace oncilla::cpu {

// Slices of `inner` elements: the i-th one of the result is slice at[i] of `from`, or, where that
// is -1, `otherwise`, which holds one element or one slice (absent: zeros).
Result<Tensor> Pick(const Tensor& from, const IntList& at, int64_t inner, Shape shape,
                    const Tensor* otherwise = nullptr);

// Integers of any width; one that is too large for int64 becomes the largest.
IntList IntsOf(const Tensor& tensor);
// A list of integers of a type, of which it must be able to hold them.
Result<Tensor> IntTensor(DType dtype, Shape shape, std::span<const int64_t> values);

}  // namespace oncilla::cpu
