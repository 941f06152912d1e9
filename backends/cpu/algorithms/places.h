// The indices of a sparse tensor's entries, shared by the kernels on sparse tensors.
#pragma once

#include <vector>

#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/tensor.h"

namespace oncilla::cpu {

// `rank` numbers for each entry, checked against the shape.
struct Places {
  IntList at;
  IntList sizes;
  size_t rank = 0, count = 0;
  const int64_t* operator[](size_t i) const { return at.data() + i * rank; }
};
// InvalidArgument unless `indices` are [values, rank] and within `sizes`.
Result<Places> PlacesOf(const Tensor& indices, const IntList& sizes, int64_t values);
// InvalidArgument when indices repeat or are not in row-major order.
Status RequireOrder(const Places& p);

Result<int64_t> ProductOfSizes(const IntList& sizes);

// The entries `numbers` of a sparse tensor: {indices, values}.
Result<std::vector<Tensor>> Entries(const Places& p, const Tensor& values, const IntList& order);
// The numbers of the entries sorted in row-major order; entries with equal indices keep their
// order.
IntList Ordered(const Places& p);
// {indices, values, shape} of a sparse tensor.
Result<std::vector<Tensor>> SparseOf(const IntList& at, Tensor values, const IntList& sizes);

}  // namespace oncilla::cpu
