// Sparse tensors on the CPU: host functions that compute which value goes where, then pick
// (pick.h).
#include "engine/ops/array/sparse.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "backends/cpu/algorithms/crosses.h"
#include "backends/cpu/algorithms/places.h"
#include "backends/cpu/algorithms/sets.h"
#include "backends/cpu/algorithms/sparse_combine.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/pick.h"
#include "backends/cpu/move.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

Tensors SparseToDense(const SparseToDenseAttrs& attrs, const NodeView& node,
                      std::span<const Tensor> in) {
  const Shape shape = node.outputs[0].desc().shape, given = in[0].shape();
  const IntList at = IntsOf(in[0]);
  const int64_t count = given.rank() == 0 ? 1 : given[0];
  const int64_t depth = given.rank() == 2 ? given[1] : 1;
  if (given.rank() > 2 || depth != shape.rank()) {
    return InvalidArgument("indices ", given, " for an output of shape ", shape);
  }
  const int64_t values = in[2].elements();
  if (in[2].shape().rank() > 1 || (in[2].shape().rank() == 1 && values != count)) {
    return InvalidArgument("values ", in[2].shape(), " for ", count, " indices");
  }
  if (in[3].elements() != 1) return InvalidArgument("default_value should be a scalar");
  const bool one = in[2].shape().rank() == 0;
  IntList from(static_cast<size_t>(shape.elements()), -1);
  int64_t before = -1;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (int k = 0; k < depth; ++k) {
      const int64_t index = at[static_cast<size_t>(i * depth + k)];
      if (index < 0 || index >= shape[k]) {
        return InvalidArgument("indices[", i, "] = ", index,
                               " is out of bounds: need 0 <= index < ", shape[k]);
      }
      place = place * shape[k] + index;
    }
    if (attrs.validate && place <= before) {
      return InvalidArgument("indices[", i, "] is ", place == before ? "repeated" : "out of order");
    }
    before = place;
    from[static_cast<size_t>(place)] = one ? 0 : i;
  }
  ONCILLA_ASSIGN(Tensor out, Pick(in[2], from, 1, shape, &in[3]));
  return std::vector<Tensor>{std::move(out)};
}

Tensors SparseReshape(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[1]);
  IntList asked = IntsOf(in[2]);
  const int64_t rows = in[0].shape().rank() == 2 ? in[0].shape()[0] : 0;
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], sizes, rows));
  ONCILLA_ASSIGN(const int64_t elements, ProductOfSizes(sizes));
  const auto hole = std::find(asked.begin(), asked.end(), -1);
  if (hole != asked.end()) {
    *hole = 1;
    ONCILLA_ASSIGN(const int64_t others, ProductOfSizes(asked));
    if (others <= 0 || elements % others != 0) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", elements,
                             " dense values, but the requested shape requires a multiple of ",
                             others);
    }
    *hole = elements / others;
  }
  for (int64_t size : asked) {
    if (size < 0) return InvalidArgument("the new shape contains ", size);
  }
  ONCILLA_ASSIGN(const int64_t total, ProductOfSizes(asked));
  if (total != elements) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " dense values, but the requested shape has ", total);
  }
  IntList out(p.count * asked.size());
  for (size_t i = 0; i < p.count; ++i) {
    int64_t place = 0;
    for (size_t k = 0; k < p.rank; ++k) place = place * sizes[k] + p[i][k];
    for (size_t k = asked.size(); k-- > 0; place /= asked[k]) {
      out[i * asked.size() + k] = place % asked[k];
    }
  }
  const Shape shape = {rows, static_cast<int64_t>(asked.size())};
  return std::vector<Tensor>{Tensor::Int64s(out).Reshaped(shape), Tensor::Int64s(asked)};
}

Tensors SparseReorder(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], IntsOf(in[2]), in[1].elements()));
  return Entries(p, in[1], Ordered(p));
}

Tensors SparseFillEmptyRows(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[2]);
  if (sizes.empty()) return InvalidArgument("Dense shape cannot be empty.");
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], sizes, in[1].elements()));
  if (in[3].elements() != 1) return InvalidArgument("the default value must be one element");
  const auto rows = static_cast<size_t>(sizes[0]);
  if (rows > (size_t{1} << 40)) return Exhausted("a sparse tensor of ", rows, " rows");
  // A counting sort by row: entries of a row keep their order.
  IntList counts(rows), next(rows), moved(p.count);
  for (size_t i = 0; i < p.count; ++i) ++counts[static_cast<size_t>(p[i][0])];
  HostVector<uint8_t> empty(rows);
  int64_t total = 0;
  WorkLook look;
  for (size_t r = 0; r < rows; ++r) {
    ONCILLA_TRY(look.Go(1));
    empty[r] = counts[r] == 0;
    next[r] = total;
    total += std::max<int64_t>(counts[r], 1);
  }
  IntList from(static_cast<size_t>(total), -1), at(static_cast<size_t>(total) * p.rank);
  for (size_t r = 0; r < rows; ++r) {
    ONCILLA_TRY(look.Go(1));
    if (empty[r] != 0) at[static_cast<size_t>(next[r]) * p.rank] = static_cast<int64_t>(r);
  }
  for (size_t i = 0; i < p.count; ++i) {
    const int64_t to = next[static_cast<size_t>(p[i][0])]++;
    moved[i] = to;
    from[static_cast<size_t>(to)] = static_cast<int64_t>(i);
    std::copy_n(p[i], p.rank, at.begin() + to * static_cast<int64_t>(p.rank));
  }
  ONCILLA_ASSIGN(Tensor values, Pick(in[1], from, 1, {total}, &in[3]));
  return std::vector<Tensor>{Tensor::Int64s(at).Reshaped({total, static_cast<int64_t>(p.rank)}),
                             std::move(values),
                             Tensor::Of<uint8_t>(DType::kBool, {static_cast<int64_t>(rows)}, empty),
                             Tensor::Int64s(moved)};
}

Tensors SparseConcat(const SparseConcatAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const auto parts = static_cast<size_t>(attrs.parts);
  IntList sizes = IntsOf(in[2 * parts]);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, static_cast<int>(sizes.size())));
  const auto along = static_cast<size_t>(axis);
  Places all;
  all.rank = sizes.size();
  int64_t offset = 0, total = 0;
  // For each value of the result: which part it comes from, and its index there.
  HostVector<std::pair<size_t, int64_t>> source;
  for (size_t i = 0; i < parts; ++i) {
    const IntList own = IntsOf(in[2 * parts + i]);
    ONCILLA_ASSIGN(const Places p, PlacesOf(in[i], own, in[parts + i].elements()));
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (own.size() != sizes.size() || (k != along && own[k] != sizes[k])) {
        return InvalidArgument("the shapes of the parts differ outside axis ", axis);
      }
    }
    for (size_t e = 0; e < p.count; ++e) {
      all.at.insert(all.at.end(), p[e], p[e] + p.rank);
      all.at[all.at.size() - p.rank + along] += offset;
      source.emplace_back(i, static_cast<int64_t>(e));
    }
    offset = SaturatingAdd(offset, own[along]);
    total += static_cast<int64_t>(p.count);
  }
  sizes[along] = offset;
  all.sizes = sizes;
  all.count = static_cast<size_t>(total);
  const IntList order = Ordered(all);
  IntList at;
  for (int64_t i : order) {
    at.insert(at.end(), all[static_cast<size_t>(i)], all[static_cast<size_t>(i)] + all.rank);
  }
  // Joins the values of all parts, then picks them in the order of the result.
  Tensor joined;
  if (in[parts].dtype() == DType::kString) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < parts; ++i) {
      texts.insert(texts.end(), in[parts + i].strings().begin(), in[parts + i].strings().end());
    }
    joined = Tensor::Strings({total}, std::move(texts));
  } else {
    ONCILLA_ASSIGN(joined, Tensor::Allocate({in[parts].dtype(), {total}}));
    auto to = joined.mutable_bytes().begin();
    for (size_t i = 0; i < parts; ++i) {
      to = std::copy(in[parts + i].bytes().begin(), in[parts + i].bytes().end(), to);
    }
  }
  ONCILLA_ASSIGN(Tensor values, Pick(joined, order, 1, {total}));
  return std::vector<Tensor>{Tensor::Int64s(at).Reshaped({total, static_cast<int64_t>(all.rank)}),
                             std::move(values), Tensor::Int64s(sizes)};
}

Tensors SparseSlice(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[2]), start = IntsOf(in[3]), asked = IntsOf(in[4]);
  ONCILLA_ASSIGN(Places p, PlacesOf(in[0], sizes, in[1].elements()));
  if (start.size() != p.rank || asked.size() != p.rank) {
    return InvalidArgument("start and size have ", start.size(), " and ", asked.size(),
                           " entries for rank ", p.rank);
  }
  IntList out_sizes(p.rank), kept;
  for (size_t k = 0; k < p.rank; ++k) {
    if (start[k] < 0 || asked[k] < 0) return InvalidArgument("start and size must not be negative");
    out_sizes[k] = std::clamp<int64_t>(sizes[k] - std::min(start[k], sizes[k]), 0, asked[k]);
  }
  for (size_t i = 0; i < p.count; ++i) {
    bool inside = true;
    for (size_t k = 0; k < p.rank; ++k) {
      const int64_t at = p[i][k] - start[k];
      inside = inside && at >= 0 && at < out_sizes[k];
    }
    if (!inside) continue;
    kept.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < p.at.size(); ++i) p.at[i] -= start[i % p.rank];
  ONCILLA_ASSIGN(std::vector<Tensor> out, Entries(p, in[1], kept));
  out.push_back(Tensor::Int64s(out_sizes));
  return out;
}

Tensors SparseSoftmax(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[2]);
  if (sizes.size() < 2) return InvalidArgument("Input should have rank >= 2, not ", sizes.size());
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], sizes, in[1].elements()));
  ONCILLA_TRY(RequireOrder(p));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(in[1].desc()));
  DispatchDType(in[1].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const auto x = in[1].As<T>();
      auto y = out.MutableAs<T>();
      for (size_t begin = 0, end = 0; begin < p.count; begin = end) {
        double most = static_cast<double>(x[begin]), sum = 0;
        for (end = begin; end < p.count && std::equal(p[begin], p[begin] + p.rank - 1, p[end]);) {
          most = std::max(most, static_cast<double>(x[end++]));
        }
        for (size_t i = begin; i < end; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
        for (size_t i = begin; i < end; ++i) {
          const double v = std::exp(static_cast<double>(x[i]) - most) / sum;
          if constexpr (std::is_same_v<T, double>) {
            y[i] = v;
          } else {
            y[i] = static_cast<T>(static_cast<float>(v));
          }
        }
      }
    }
  });
  return std::vector<Tensor>{std::move(out)};
}

// The lists along the last axis of a sparse tensor, by their index among all lists of `shape`.
std::unordered_map<int64_t, IntList> ListsOf(const Places& p, const Shape& shape) {
  std::unordered_map<int64_t, IntList> lists;
  for (size_t i = 0; i < p.count; ++i) {
    int64_t place = 0;
    for (size_t k = 0; k + 1 < p.rank; ++k) place = place * shape[static_cast<int>(k)] + p[i][k];
    lists[place].push_back(static_cast<int64_t>(i));
  }
  return lists;
}

// Levenshtein's distance, row by row of the table.
template <class Same>
int64_t Distance(int64_t n, int64_t m, Same&& same) {
  IntList row(static_cast<size_t>(m) + 1);
  std::iota(row.begin(), row.end(), 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < static_cast<size_t>(m); ++j) {
      const int64_t changed = diagonal + (same(i, static_cast<int64_t>(j)) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

Tensors EditDistance(const EditDistanceAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[2]), other_sizes = IntsOf(in[5]);
  if (sizes.size() != other_sizes.size() || sizes.empty() || sizes.size() > kMaxRank) {
    return InvalidArgument("hypothesis and truth must be of one rank, not ", sizes.size(), " and ",
                           other_sizes.size());
  }
  ONCILLA_ASSIGN(const Places a, PlacesOf(in[0], sizes, in[1].elements()));
  ONCILLA_ASSIGN(const Places b, PlacesOf(in[3], other_sizes, in[4].elements()));
  Shape shape;
  for (size_t k = 0; k + 1 < sizes.size(); ++k) {
    shape.push_back(std::max(sizes[k], other_sizes[k]));
  }
  if (shape.elements() > (int64_t{1} << 40)) return Exhausted("distances of the shape ", shape);
  const auto lists = ListsOf(a, shape), truths = ListsOf(b, shape);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kF32, shape}));
  auto result = out.MutableAs<float>();
  auto equal = [&](int64_t i, int64_t j) {
    const auto x = static_cast<size_t>(i), y = static_cast<size_t>(j);
    if (in[1].dtype() == DType::kString) return in[1].strings()[x] == in[4].strings()[y];
    bool same = false;
    DispatchDType(in[1].dtype(),
                  [&]<class T>(TypeTag<T>) { same = in[1].As<T>()[x] == in[4].As<T>()[y]; });
    return same;
  };
  const IntList none;
  auto find = [&](const auto& map, int64_t place) -> const IntList& {
    const auto it = map.find(place);
    return it == map.end() ? none : it->second;
  };
  auto measure = [&](int64_t place) {
    const IntList &x = find(lists, place), &y = find(truths, place);
    const auto n = static_cast<int64_t>(x.size()), m = static_cast<int64_t>(y.size());
    const int64_t distance = Distance(n, m, [&](int64_t i, int64_t j) {
      return equal(x[static_cast<size_t>(i)], y[static_cast<size_t>(j)]);
    });
    auto value = static_cast<float>(distance);
    if (attrs.normalize) value = m > 0 ? value / static_cast<float>(m) : n > 0 ? INFINITY : 0.0f;
    result[static_cast<size_t>(place)] = value;
  };
  for (const auto& item : lists) measure(item.first);
  for (const auto& item : truths) measure(item.first);
  return std::vector<Tensor>{std::move(out)};
}

template <class Read>
IntList NotIn(int64_t n, int64_t m, Read&& read) {
  using T = std::decay_t<decltype(read(0, int64_t{0}))>;
  std::unordered_set<T> there;
  for (int64_t i = 0; i < m; ++i) there.insert(read(1, i));
  IntList out;
  for (int64_t i = 0; i < n; ++i) {
    if (there.count(read(0, i)) == 0) out.push_back(i);
  }
  return out;
}

Tensors ListDiff(const ListDiffAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const int64_t n = in[0].elements(), m = in[1].elements();
  IntList at;
  if (in[0].dtype() == DType::kString) {
    at = NotIn(n, m, [&](size_t k, int64_t i) { return in[k].strings()[static_cast<size_t>(i)]; });
  } else {
    DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
      // A NaN equals nothing, itself included; 16-bit floats are compared as floats.
      using Key = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      at = NotIn(n, m, [&](size_t k, int64_t i) {
        return static_cast<Key>(in[k].As<T>()[static_cast<size_t>(i)]);
      });
    });
  }
  const auto count = static_cast<int64_t>(at.size());
  ONCILLA_ASSIGN(Tensor values, Pick(in[0], at, 1, {count}));
  ONCILLA_ASSIGN(Tensor places, IntTensor(attrs.to, {count}, at));
  return std::vector<Tensor>{std::move(values), std::move(places)};
}

// Checks that the shape of `number` is a prefix of that of x.
Status CheckPrefix(const Shape& x, const Shape& number) {
  for (int i = 0; i < number.rank(); ++i) {
    if (i >= x.rank() || x[i] != number[i]) {
      return InvalidArgument("data.shape must start with ", number, ", got ", x);
    }
  }
  return Status();
}

Shape SlicesOf(const Shape& x, int axes, int64_t count) {
  Shape shape = {count};
  for (int i = axes; i < x.rank(); ++i) shape.push_back(x[i]);
  return shape;
}

Tensors DynamicPartition(const DynamicPartitionAttrs& attrs, const NodeView&,
                         std::span<const Tensor> in) {
  const Shape &x = in[0].shape(), &number = in[1].shape();
  ONCILLA_TRY(CheckPrefix(x, number));
  const IntList to = IntsOf(in[1]);
  std::vector<IntList> parts(static_cast<size_t>(attrs.parts));
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] < 0 || to[i] >= attrs.parts) {
      return InvalidArgument("partitions[", i, "] = ", to[i], " is not in [0, ", attrs.parts, ")");
    }
    parts[static_cast<size_t>(to[i])].push_back(static_cast<int64_t>(i));
  }
  const int64_t inner = x.Product(number.rank(), x.rank());
  std::vector<Tensor> out;
  for (const IntList& part : parts) {
    const Shape shape = SlicesOf(x, number.rank(), static_cast<int64_t>(part.size()));
    ONCILLA_ASSIGN(Tensor one, Pick(in[0], part, inner, shape));
    out.push_back(std::move(one));
  }
  return out;
}

Tensors DynamicStitch(const DynamicStitchAttrs& attrs, const NodeView&,
                      std::span<const Tensor> in) {
  const auto parts = static_cast<size_t>(attrs.parts);
  int64_t rows = 0;
  Shape shape;
  for (size_t i = 0; i < parts; ++i) {
    const Shape &number = in[i].shape(), &x = in[parts + i].shape();
    ONCILLA_TRY(CheckPrefix(x, number));
    const Shape own = SlicesOf(x, number.rank(), 0);
    if (i > 0 && own != shape) {
      return InvalidArgument("data ", x, " with indices ", number, " does not fit the other parts");
    }
    shape = own;
    for (int64_t row : IntsOf(in[i])) {
      if (row < 0) return InvalidArgument("indices[", i, "] contains ", row);
      rows = std::max(rows, SaturatingAdd(row, 1));
    }
  }
  const int64_t inner = shape.Product(1, shape.rank());
  shape[0] = rows;
  if (in[parts].dtype() == DType::kString) {
    std::vector<std::string> out(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < parts; ++i) {
      auto from = in[parts + i].strings().begin();
      for (int64_t row : IntsOf(in[i])) {
        std::copy_n(from, inner, out.begin() + row * inner);
        from += inner;
      }
    }
    return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({in[parts].dtype(), shape}));
  const int64_t bytes = inner * BytesOf(in[parts].dtype());
  for (size_t i = 0; i < parts; ++i) {
    auto from = in[parts + i].bytes().begin();
    for (int64_t row : IntsOf(in[i])) {
      std::copy_n(from, bytes, out.mutable_bytes().begin() + row * bytes);
      from += bytes;
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

Tensors InvertPermutation(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList x = IntsOf(in[0]);
  IntList y(x.size(), -1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0 || x[i] >= static_cast<int64_t>(x.size())) {
      return InvalidArgument(x[i], " is not between 0 and ", x.size());
    }
    int64_t& to = y[static_cast<size_t>(x[i])];
    if (to != -1) return InvalidArgument(x[i], " is duplicated in the input.");
    to = static_cast<int64_t>(i);
  }
  ONCILLA_ASSIGN(Tensor out, IntTensor(in[0].dtype(), in[0].shape(), y));
  return std::vector<Tensor>{std::move(out)};
}

Tensors UnravelIndex(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList at = IntsOf(in[0]), sizes = IntsOf(in[1]);
  for (int64_t size : sizes) {
    if (size <= 0) return InvalidArgument("Input dims cannot contain a dim of ", size);
  }
  ONCILLA_ASSIGN(const int64_t elements, ProductOfSizes(sizes));
  IntList out(sizes.size() * at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] >= elements) {
      return InvalidArgument("index is out of bound as with dims: ", at[i], " of ", elements);
    }
    int64_t place = at[i];
    for (size_t k = sizes.size(); k-- > 0; place /= sizes[k]) {
      out[k * at.size() + i] = place % sizes[k];
    }
  }
  Shape shape = in[0].shape();
  shape.Insert(0, static_cast<int64_t>(sizes.size()));
  ONCILLA_ASSIGN(Tensor result, IntTensor(in[0].dtype(), shape, out));
  return std::vector<Tensor>{std::move(result)};
}

Tensors BroadcastSizes(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const IntList a = IntsOf(in[0]), b = IntsOf(in[1]);
  IntList out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {  // from the end
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("Incompatible shapes: sizes ", x, " and ", y, " do not broadcast");
    }
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  ONCILLA_ASSIGN(Tensor result, IntTensor(in[0].dtype(), {static_cast<int64_t>(out.size())}, out));
  return std::vector<Tensor>{std::move(result)};
}

const KernelRow kRows[] = {
    HostRow<SparseToDense>("SparseToDense", kIntegers),
    HostRow<SparseReshape>("SparseReshape", kIntegers),
    HostRow<SparseReorder>("SparseReorder", kIntegers),
    HostRow<SparseFillEmptyRows>("SparseFillEmptyRows", kIntegers),
    HostRow<SparseConcat>("SparseConcat", kIntegers),
    HostRow<SparseSlice>("SparseSlice", kIntegers),
    HostRow<EditDistance>("EditDistance", kIntegers),
    HostRow<SparseSoftmax>("SparseSoftmax", kIntegers),
    HostRow<SparseAdd>("SparseAdd", kIntegers),
    HostRow<SparsePick>("SparsePick", kIntegers),
    HostRow<SparseLookup>("SparseLookup", kIntegers),
    HostRow<SparseSplit>("SparseSplit", kIntegers),
    HostRow<SparseReduce>("SparseReduce", kIntegers),
    HostRow<SetOperation>("SetOperation", kIntegers | kStrings),
    HostRow<SetSize>("SetSize", kIntegers),
    HostRow<FeatureCross>("FeatureCross", kIntegers | kStrings),
    HostRow<ListDiff>("ListDiff", kAll),
    HostRow<DynamicPartition>("DynamicPartition", kAll),
    HostRow<DynamicStitch>("DynamicStitch", kIntegers),
    HostRow<InvertPermutation>("InvertPermutation", kIntegers),
    HostRow<UnravelIndex>("UnravelIndex", kIntegers),
    HostRow<BroadcastSizes>("BroadcastSizes", kIntegers),
};

}  // namespace

std::span<const KernelRow> SparseKernels() { return kRows; }

}  // namespace oncilla::cpu
