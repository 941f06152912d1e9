// Positions of sparse tensors: reading, checking, ordering.
#include "backends/cpu/algorithms/places.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernels/pick.h"

namespace oncilla::cpu {

Result<Places> PlacesOf(const Tensor& indices, const IntList& sizes, int64_t values) {
  Places p;
  p.at = IntsOf(indices);
  p.sizes = sizes;
  p.rank = sizes.size();
  const Shape& shape = indices.shape();
  if (shape.rank() != 2 || shape[1] != static_cast<int64_t>(p.rank) || shape[0] != values) {
    return InvalidArgument("indices ", shape, " do not fit ", values, " values of rank ", p.rank);
  }
  p.count = static_cast<size_t>(shape[0]);
  for (int64_t size : sizes) {
    if (size < 0) return InvalidArgument("the shape contains ", size);
  }
  for (size_t i = 0; i < p.count; ++i) {
    for (size_t k = 0; k < p.rank; ++k) {
      if (p[i][k] < 0 || p[i][k] >= sizes[k]) {
        return InvalidArgument("indices[", i, ",", k, "] = ", p[i][k],
                               " is out of bounds: need 0 <= index < ", sizes[k]);
      }
    }
  }
  return p;
}

Result<int64_t> ProductOfSizes(const IntList& sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product = SaturatingMul(product, size);
  if (product == std::numeric_limits<int64_t>::max()) return InvalidArgument("a shape too large");
  return product;
}

Status RequireOrder(const Places& p) {
  for (size_t i = 1; i < p.count; ++i) {
    if (!std::lexicographical_compare(p[i - 1], p[i - 1] + p.rank, p[i], p[i] + p.rank)) {
      return InvalidArgument(
          "indices[", i, "] is ",
          std::equal(p[i], p[i] + p.rank, p[i - 1]) ? "repeated" : "out of order");
    }
  }
  return Status();
}

Result<std::vector<Tensor>> Entries(const Places& p, const Tensor& values, const IntList& order) {
  IntList at;
  for (int64_t i : order) {
    const int64_t* from = p[static_cast<size_t>(i)];
    at.insert(at.end(), from, from + p.rank);
  }
  const auto count = static_cast<int64_t>(order.size());
  ONCILLA_ASSIGN(Tensor picked, Pick(values, order, 1, {count}));
  return std::vector<Tensor>{Tensor::Int64s(at).Reshaped({count, static_cast<int64_t>(p.rank)}),
                             std::move(picked)};
}

IntList Ordered(const Places& p) {
  IntList order(p.count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t *x = p[static_cast<size_t>(a)], *y = p[static_cast<size_t>(b)];
    return std::lexicographical_compare(x, x + p.rank, y, y + p.rank);
  });
  return order;
}

Result<std::vector<Tensor>> SparseOf(const IntList& at, Tensor values, const IntList& sizes) {
  const Shape shape = {values.elements(), static_cast<int64_t>(sizes.size())};
  return std::vector<Tensor>{Tensor::Int64s(at).Reshaped(shape), std::move(values),
                             Tensor::Int64s(sizes)};
}

}  // namespace oncilla::cpu
