// Shared checks of inputs, and making facts of known integers.
#include "engine/ops/rules.h"

#include <algorithm>

#include "engine/tensor/dispatch.h"

namespace oncilla {

Status RequireFloat(const Fact& fact, std::string_view what) {
  if (IsFloat(fact.dtype)) return Status();
  return InvalidArgument(what, " must be floating point, not ", fact.dtype);
}

Status RequireNumber(const Fact& fact, std::string_view what) {
  if (IsNumber(fact.dtype)) return Status();
  return InvalidArgument(what, " must be a number, not ", fact.dtype);
}

Status RequireInteger(const Fact& fact, std::string_view what) {
  if (IsInteger(fact.dtype)) return Status();
  return InvalidArgument(what, " must be an integer, not ", fact.dtype);
}

Status RequireRank(const Fact& fact, int rank, std::string_view what) {
  if (!fact.shape.ranked() || fact.shape.rank() == rank) return Status();
  return InvalidArgument(what, " must have rank ", rank, ", not shape ", fact.shape);
}

Status RequireSameDType(std::span<const Fact> in) {
  const Fact* first = nullptr;
  for (const Fact& fact : in) {
    if (fact.absent()) continue;
    if (first == nullptr) first = &fact;
    if (fact.dtype != first->dtype) {
      return InvalidArgument("inputs differ in dtype: ", first->dtype, " and ", fact.dtype);
    }
  }
  return Status();
}

Result<std::vector<int>> NormalizeAxes(std::span<const int64_t> axes, int rank) {
  std::vector<int> out;
  for (int64_t axis : axes) {
    ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, rank));
    out.push_back(a);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    return InvalidArgument("an axis is named twice");
  }
  return out;
}

Fact WithElements(Fact fact, std::vector<Dim> elements) {
  const bool all =
      std::all_of(elements.begin(), elements.end(), [](const Dim& d) { return d.known(); });
  if (!all || !fact.shape.known()) {
    fact.elements = std::move(elements);
    return fact;
  }
  auto value = Tensor::Allocate(fact.desc());
  if (!value.ok()) return fact;
  DispatchDType(fact.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      auto to = value->template MutableAs<T>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(elements[i].size);
      fact.value = *value;
    }
  });
  return fact;
}

PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return PartialShape();
  PartialShape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (!a[i].Same(b[i])) out[i] = Dim();
  }
  return out;
}

}  // namespace oncilla
