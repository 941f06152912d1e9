// Adding, slicing and reducing sparse tensors: host functions.
#include "backends/cpu/algorithms/sparse_combine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/algorithms/places.h"
#include "backends/cpu/kernels/pick.h"
#include "engine/ops/rules.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

template <class T>
constexpr bool kNarrowFloat = !std::is_arithmetic_v<T>;

// Integers wrap around.
template <class T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else if constexpr (kNarrowFloat<T>) {
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  } else {
    return a + b;
  }
}

// |value| >= threshold.
template <class T>
bool Reaches(T value, T threshold) {
  if constexpr (std::is_integral_v<T>) {
    if (threshold < 0) return true;
    const auto bits = static_cast<uint64_t>(value);
    return (value < 0 ? uint64_t{0} - bits : bits) >= static_cast<uint64_t>(threshold);
  } else {
    return std::fabs(static_cast<double>(value)) >= static_cast<double>(threshold);
  }
}

// The entry of each operand that contributes to a sum, or -1.
struct Pair {
  int64_t a = -1, b = -1;
};

HostVector<Pair> Merge(const Places& a, const Places& b) {
  HostVector<Pair> out;
  size_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    Pair pair;
    const bool first =
        j == b.count ||
        (i < a.count && !std::lexicographical_compare(b[j], b[j] + b.rank, a[i], a[i] + a.rank));
    const bool second =
        i == a.count ||
        (j < b.count && !std::lexicographical_compare(a[i], a[i] + a.rank, b[j], b[j] + b.rank));
    if (first) pair.a = static_cast<int64_t>(i++);
    if (second) pair.b = static_cast<int64_t>(j++);
    out.push_back(pair);
  }
  return out;
}

// The common shape of two sparse operands.
Result<IntList> CommonSizes(std::span<const Tensor> in) {
  IntList sizes = IntsOf(in[2]);
  const IntList other_sizes = IntsOf(in[5]);
  if (sizes == other_sizes) return sizes;
  return InvalidArgument("Operands' shapes do not match: ", sizes.size(), " and ",
                         other_sizes.size(), " axes or other sizes");
}

// The index of a pair of entries, or of the one that exists.
const int64_t* PlaceOf(const Pair& pair, const Places& a, const Places& b) {
  return pair.a < 0 ? b[static_cast<size_t>(pair.b)] : a[static_cast<size_t>(pair.a)];
}

// The number of an entry with the index at `wanted`, or -1; `order` sorts the entries.
int64_t Found(const Places& p, const IntList& order, const int64_t* wanted) {
  const auto before = [&](int64_t entry, const int64_t* other) {
    const int64_t* own = p[static_cast<size_t>(entry)];
    return std::lexicographical_compare(own, own + p.rank, other, other + p.rank);
  };
  const auto at = std::lower_bound(order.begin(), order.end(), wanted, before);
  if (at == order.end()) return -1;
  return std::equal(wanted, wanted + p.rank, p[static_cast<size_t>(*at)]) ? *at : -1;
}

}  // namespace

Tensors SparsePick(const SparsePickAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const IntList sizes, CommonSizes(in));
  ONCILLA_ASSIGN(const Places a, PlacesOf(in[0], sizes, in[1].elements()));
  ONCILLA_ASSIGN(const Places b, PlacesOf(in[3], sizes, in[4].elements()));
  const HostVector<Pair> pairs = Merge(a, b);
  ONCILLA_ASSIGN(Tensor values, Tensor::Allocate({in[1].dtype(), {std::ssize(pairs)}}));
  IntList at;
  for (const Pair& pair : pairs) {
    const int64_t* place = PlaceOf(pair, a, b);
    at.insert(at.end(), place, place + a.rank);
  }
  DispatchDType(in[1].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;
      const auto x = in[1].As<T>(), y = in[4].As<T>();
      for (size_t i = 0; i < pairs.size(); ++i) {
        const T left = pairs[i].a < 0 ? T() : x[static_cast<size_t>(pairs[i].a)];
        const T right = pairs[i].b < 0 ? T() : y[static_cast<size_t>(pairs[i].b)];
        const auto l = static_cast<Wide>(left), r = static_cast<Wide>(right);
        // Not a number wins, as in Max and Min.
        const bool second = attrs.smaller ? !(l <= r) : !(l >= r);
        values.MutableAs<T>()[i] = second && l == l ? right : left;
      }
    }
  });
  return SparseOf(at, std::move(values), sizes);
}

Tensors SparseLookup(const SparseLookupAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  Places entries, wanted;
  for (const size_t i : {0, 2}) {
    const Shape& shape = in[i].shape();
    if (shape.rank() != 2 || shape[1] != in[0].shape()[1]) {
      return InvalidArgument("indices ", in[0].shape(), ", and wanted ones ", shape);
    }
    Places& p = i == 0 ? entries : wanted;
    p.at = IntsOf(in[i]);
    p.count = static_cast<size_t>(shape[0]);
    p.rank = static_cast<size_t>(shape[1]);
  }
  if (in[1].elements() != static_cast<int64_t>(entries.count)) {
    return InvalidArgument("there are ", entries.count, " indices for ", in[1].elements(),
                           " values");
  }
  const IntList order = Ordered(entries);
  std::vector<bool> used(entries.count);
  IntList picked;
  for (size_t i = 0; i < wanted.count; ++i) {
    picked.push_back(Found(entries, order, wanted[i]));
    if (picked.back() >= 0) used[static_cast<size_t>(picked.back())] = true;
  }
  if (const auto left = std::find(used.begin(), used.end(), false);
      attrs.complete && left != used.end()) {
    return InvalidArgument("entry ", left - used.begin(), " of ", used.size(),
                           " has an index that is not wanted");
  }
  ONCILLA_ASSIGN(Tensor out, Pick(in[1], picked, 1, {std::ssize(picked)}));
  return std::vector<Tensor>{std::move(out)};
}

Tensors SparseAdd(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const IntList sizes, CommonSizes(in));
  if (in[6].elements() != 1) return InvalidArgument("the threshold must be one element");
  ONCILLA_ASSIGN(const Places a, PlacesOf(in[0], sizes, in[1].elements()));
  ONCILLA_ASSIGN(const Places b, PlacesOf(in[3], sizes, in[4].elements()));
  const HostVector<Pair> pairs = Merge(a, b);
  ONCILLA_ASSIGN(Tensor sums, Tensor::Allocate({in[1].dtype(), {std::ssize(pairs)}}));
  IntList kept, at;
  DispatchDType(in[1].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto x = in[1].As<T>(), y = in[4].As<T>();
      const T threshold = in[6].As<T>()[0];
      for (size_t i = 0; i < pairs.size(); ++i) {
        const T left = pairs[i].a < 0 ? T() : x[static_cast<size_t>(pairs[i].a)];
        const T right = pairs[i].b < 0 ? T() : y[static_cast<size_t>(pairs[i].b)];
        T& sum = sums.MutableAs<T>()[i];
        sum = pairs[i].b < 0 ? left : pairs[i].a < 0 ? right : Sum(left, right);
        // An entry that exists in one operand only is kept, however small it is.
        if (pairs[i].a >= 0 && pairs[i].b >= 0 && !Reaches(sum, threshold)) continue;
        kept.push_back(static_cast<int64_t>(i));
        const int64_t* place = PlaceOf(pairs[i], a, b);
        at.insert(at.end(), place, place + a.rank);
      }
    }
  });
  ONCILLA_ASSIGN(Tensor values, Pick(sums, kept, 1, {std::ssize(kept)}));
  return SparseOf(at, std::move(values), sizes);
}

Tensors SparseSplit(const SparseSplitAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[3]), asked = IntsOf(in[0]);
  if (asked.size() != 1) return InvalidArgument("the axis has ", asked.size(), " numbers");
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(asked[0], static_cast<int>(sizes.size())));
  const auto along = static_cast<size_t>(axis);
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[1], sizes, in[2].elements()));
  const int64_t parts = attrs.parts;
  if (parts > sizes[along]) {
    return InvalidArgument("num_split must be at most the size of axis ", axis, ", ", sizes[along],
                           ", not ", parts);
  }
  const int64_t size = sizes[along] / parts, longer = sizes[along] % parts;
  std::vector<IntList> kept(static_cast<size_t>(parts));
  Places moved = p;
  for (size_t i = 0; i < p.count; ++i) {
    const int64_t place = p[i][along], border = longer * (size + 1);
    const int64_t part = place < border ? place / (size + 1) : longer + (place - border) / size;
    moved.at[i * p.rank + along] = place - part * size - std::min(part, longer);
    kept[static_cast<size_t>(part)].push_back(static_cast<int64_t>(i));
  }
  std::vector<Tensor> indices, out, shapes;
  for (int64_t k = 0; k < parts; ++k) {
    ONCILLA_ASSIGN(const std::vector<Tensor> part,
                   Entries(moved, in[2], kept[static_cast<size_t>(k)]));
    IntList own = sizes;
    own[along] = size + (k < longer ? 1 : 0);
    indices.push_back(part[0]);
    out.push_back(part[1]);
    shapes.push_back(Tensor::Int64s(own));
  }
  indices.insert(indices.end(), out.begin(), out.end());
  indices.insert(indices.end(), shapes.begin(), shapes.end());
  return indices;
}

Tensors SparseReduce(const SparseReduceAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const IntList sizes = IntsOf(in[2]), asked = IntsOf(in[3]);
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], sizes, in[1].elements()));
  std::vector<bool> reduced(p.rank);
  for (const int64_t axis : asked) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, static_cast<int>(p.rank)));
    reduced[static_cast<size_t>(at)] = true;
  }
  // The axes that are kept, and the entries at their positions along these axes.
  IntList out_sizes;
  Places groups;
  groups.count = p.count;
  for (size_t k = 0; k < p.rank; ++k) {
    if (!reduced[k]) ++groups.rank;
    if (!reduced[k] || attrs.keep_dims) out_sizes.push_back(reduced[k] ? 1 : sizes[k]);
  }
  for (size_t i = 0; i < p.count; ++i) {
    for (size_t k = 0; k < p.rank; ++k) {
      if (!reduced[k]) groups.at.push_back(p[i][k]);
    }
  }
  // Within a group, entries are added in the order of their positions.
  IntList order = Ordered(p), at;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t *x = groups[static_cast<size_t>(a)], *y = groups[static_cast<size_t>(b)];
    return std::lexicographical_compare(x, x + groups.rank, y, y + groups.rank);
  });
  // The entries of a group are now adjacent. Find where each group begins, and its indices in the
  // output.
  IntList begins;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t* own = groups[static_cast<size_t>(order[i])];
    if (i > 0 && std::equal(own, own + groups.rank, groups[static_cast<size_t>(order[i - 1])])) {
      continue;
    }
    begins.push_back(static_cast<int64_t>(i));
    for (size_t k = 0, from = 0; k < p.rank; ++k) {
      if (!reduced[k]) {
        at.push_back(own[from++]);
      } else if (attrs.keep_dims) {
        at.push_back(0);
      }
    }
  }
  const int64_t count = std::ssize(begins);
  begins.push_back(std::ssize(order));
  ONCILLA_ASSIGN(Tensor values, Tensor::Allocate({in[1].dtype(), {count}}));
  DispatchDType(in[1].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      // f16 and bf16 are added in f32.
      using Wide = std::conditional_t<kNarrowFloat<T>, float, T>;
      const auto x = in[1].As<T>();
      for (size_t g = 0; g < static_cast<size_t>(count); ++g) {
        auto i = static_cast<size_t>(begins[g]);
        Wide total = static_cast<Wide>(x[static_cast<size_t>(order[i])]);
        for (++i; i < static_cast<size_t>(begins[g + 1]); ++i) {
          const auto value = static_cast<Wide>(x[static_cast<size_t>(order[i])]);
          total = attrs.reduction == "sum" ? Sum(total, value) : std::max(total, value);
        }
        values.MutableAs<T>()[g] = static_cast<T>(total);
      }
    }
  });
  return SparseOf(at, std::move(values), out_sizes);
}

}  // namespace oncilla::cpu
