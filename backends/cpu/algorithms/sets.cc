// Sets along the last axis of dense and sparse tensors: host functions.
#include "backends/cpu/algorithms/sets.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "backends/cpu/algorithms/places.h"
#include "backends/cpu/kernels/pick.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

// One operand: the elements of each set, by the set's index among all sets of the operand.
struct Operand {
  IntList sizes;  // the last size is that of the axis along which the sets lie
  Tensor values;
  std::map<int64_t, IntList> sets;
};

Status CheckRank(size_t rank) {
  if (rank >= 2) return Status();
  return InvalidArgument("Invalid rank ", rank, ": sets need at least two axes");
}

Result<Operand> ReadSparse(std::span<const Tensor> in, bool validate) {
  Operand out;
  out.sizes = IntsOf(in[2]);
  out.values = in[1];
  ONCILLA_TRY(CheckRank(out.sizes.size()));
  ONCILLA_ASSIGN(const Places p, PlacesOf(in[0], out.sizes, in[1].elements()));
  ONCILLA_TRY(ProductOfSizes(out.sizes).status());
  if (validate) ONCILLA_TRY(RequireOrder(p));
  for (size_t i = 0; i < p.count; ++i) {
    int64_t place = 0;
    for (size_t k = 0; k + 1 < p.rank; ++k) place = place * out.sizes[k] + p[i][k];
    out.sets[place].push_back(static_cast<int64_t>(i));
  }
  return out;
}

Result<Operand> ReadDense(const Tensor& x) {
  Operand out;
  out.sizes.assign(x.shape().begin(), x.shape().end());
  out.values = x;
  ONCILLA_TRY(CheckRank(out.sizes.size()));
  for (int64_t i = 0; i < x.elements(); ++i) out.sets[i / out.sizes.back()].push_back(i);
  return out;
}

// The elements of a set with their values, in ascending order, each value once.
template <class Value>
struct Member {
  Value value;
  int64_t element = 0;
  friend bool operator<(const Member& a, const Member& b) { return a.value < b.value; }
  friend bool operator==(const Member& a, const Member& b) { return a.value == b.value; }
};

template <class Value, class Read>
HostVector<Member<Value>> SetOf(const IntList& elements, Read&& read) {
  HostVector<Member<Value>> out;
  for (const int64_t i : elements) out.push_back({read(i), i});
  std::stable_sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Calls fn with a function that reads element i of a tensor as a comparable value.
template <class F>
auto WithReader(const Tensor& values, F&& fn) {
  if (values.dtype() == DType::kString) {
    const std::vector<std::string>& text = values.strings();
    return fn([&text](int64_t i) { return std::string_view(text[static_cast<size_t>(i)]); });
  }
  const IntList numbers = IntsOf(values);
  return fn([&numbers](int64_t i) { return numbers[static_cast<size_t>(i)]; });
}

// An element of one of the operands.
struct Source {
  bool second = false;
  int64_t element = 0;
};

template <class Value>
HostVector<Source> Combine(const std::string& operation, const HostVector<Member<Value>>& a,
                           const HostVector<Member<Value>>& b) {
  const bool only_a = operation == "a-b" || operation == "union";
  const bool only_b = operation == "b-a" || operation == "union";
  const bool both = operation == "intersection" || operation == "union";
  HostVector<Source> out;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool first = j == b.size() || (i < a.size() && !(b[j] < a[i]));
    const bool second = i == a.size() || (j < b.size() && !(a[i] < b[j]));
    if (first && second ? both : first ? only_a : only_b) {
      out.push_back(first ? Source{false, a[i].element} : Source{true, b[j].element});
    }
    if (first) ++i;
    if (second) ++j;
  }
  return out;
}

// Values of either operand.
Result<Tensor> Gather(const Operand& a, const Operand& b, const HostVector<Source>& from) {
  const int64_t first = a.values.elements();
  IntList at;
  for (const Source& source : from) at.push_back(source.element + (source.second ? first : 0));
  const Shape all = {first + b.values.elements()};
  if (a.values.dtype() == DType::kString) {
    Growth growth;
    std::vector<std::string> texts;
    for (const Source& source : from) {
      const Operand& own = source.second ? b : a;
      const std::string& text = own.values.strings()[static_cast<size_t>(source.element)];
      ONCILLA_TRY(growth.Add(std::ssize(text) + static_cast<int64_t>(sizeof(std::string))));
      texts.push_back(text);
    }
    growth.Clear();
    return Tensor::Strings({std::ssize(from)}, std::move(texts));
  }
  ONCILLA_ASSIGN(Tensor joined, Tensor::Allocate({a.values.dtype(), all}));
  auto to =
      std::copy(a.values.bytes().begin(), a.values.bytes().end(), joined.mutable_bytes().begin());
  std::copy(b.values.bytes().begin(), b.values.bytes().end(), to);
  return Pick(joined, at, 1, {std::ssize(from)});
}

}  // namespace

Tensors SetOperation(const SetOperationAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const size_t second = attrs.dense_first ? 1 : 3;
  ONCILLA_ASSIGN(const Operand a,
                 attrs.dense_first ? ReadDense(in[0]) : ReadSparse(in.first(3), attrs.validate));
  ONCILLA_ASSIGN(const Operand b, attrs.dense_second
                                      ? ReadDense(in[second])
                                      : ReadSparse(in.subspan(second, 3), attrs.validate));
  if (a.sizes.size() != b.sizes.size() ||
      !std::equal(a.sizes.begin(), a.sizes.end() - 1, b.sizes.begin())) {
    return InvalidArgument("Mismatched shapes: the operands differ in more than their last axis");
  }
  const size_t outer = a.sizes.size() - 1;
  HostVector<Source> all;
  IntList at;
  int64_t largest = 0;
  WorkLook look;
  const auto combine = [&](auto&& read_a, auto&& read_b) -> Status {
    using Value = std::decay_t<decltype(read_a(int64_t{0}))>;
    const IntList none;
    auto i = a.sets.begin();
    auto j = b.sets.begin();
    while (i != a.sets.end() || j != b.sets.end()) {
      const bool first = j == b.sets.end() || (i != a.sets.end() && i->first <= j->first);
      const bool also = i == a.sets.end() || (j != b.sets.end() && j->first <= i->first);
      int64_t place = first ? i->first : j->first;
      const auto x = SetOf<Value>(first ? i->second : none, read_a);
      const auto y = SetOf<Value>(also ? j->second : none, read_b);
      const HostVector<Source> set = Combine(attrs.operation, x, y);
      ONCILLA_TRY(look.Go(std::ssize(x) + std::ssize(y) + 1));
      if (first) ++i;
      if (also) ++j;
      IntList group(outer);
      for (size_t k = outer; k-- > 0; place /= a.sizes[k]) group[k] = place % a.sizes[k];
      for (int64_t k = 0; k < std::ssize(set); ++k) {
        at.insert(at.end(), group.begin(), group.end());
        at.push_back(k);
      }
      all.insert(all.end(), set.begin(), set.end());
      largest = std::max<int64_t>(largest, std::ssize(set));
    }
    return Status();
  };
  ONCILLA_TRY(WithReader(a.values, [&](auto&& read_a) {
    return WithReader(b.values, [&](auto&& read_b) -> Status {
      if constexpr (std::is_same_v<decltype(read_a(int64_t{0})), decltype(read_b(int64_t{0}))>) {
        return combine(read_a, read_b);
      } else {
        return InvalidArgument("the operands are ", a.values.dtype(), " and ", b.values.dtype());
      }
    });
  }));
  IntList sizes = a.sizes;
  sizes.back() = largest;
  ONCILLA_ASSIGN(Tensor values, Gather(a, b, all));
  return SparseOf(at, std::move(values), sizes);
}

Tensors SetSize(const SetSizeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Operand x, ReadSparse(in, attrs.validate));
  if (x.sizes.size() - 1 > kMaxRank) return Unsupported("rank ", x.sizes.size());
  const Shape shape(x.sizes.begin(), x.sizes.end() - 1);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kI32, shape}));
  WithReader(x.values, [&](auto&& read) {
    using Value = std::decay_t<decltype(read(int64_t{0}))>;
    for (const auto& set : x.sets) {
      out.MutableAs<int32_t>()[static_cast<size_t>(set.first)] =
          static_cast<int32_t>(SetOf<Value>(set.second, read).size());
    }
    return 0;
  });
  return std::vector<Tensor>{std::move(out)};
}

}  // namespace oncilla::cpu
