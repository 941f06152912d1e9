// Reading integers out of facts.
#include "engine/ops/fact.h"

#include <algorithm>

namespace oncilla {

std::ostream& operator<<(std::ostream& out, const Fact& fact) {
  switch (fact.kind) {
    case ValueKind::kTensor:
      return out << fact.dtype << fact.shape;
    case ValueKind::kList:
      return out << "list<" << fact.dtype << fact.shape << '>';
    case ValueKind::kOptional:
      return out << "optional<" << fact.dtype << fact.shape << '>';
    case ValueKind::kResource:
      return out << "resource";
    case ValueKind::kAbsent:
      return out << "absent";
  }
  return out;
}

std::optional<std::vector<Dim>> KnownInts(const Fact& fact) {
  if (fact.elements.has_value()) return fact.elements;
  if (fact.has_value() && fact.value.shape().rank() <= 1 &&
      fact.value.elements() <= kMaxKnownInts) {
    auto ints = ToInt64s(fact.value);
    if (!ints.ok()) return std::nullopt;
    std::vector<Dim> out(ints->size());
    for (size_t i = 0; i < out.size(); ++i) out[i].size = (*ints)[i];
    return out;
  }
  const Dim count = fact.shape.elements();
  if (!IsInteger(fact.dtype) || !count.known() || fact.shape.rank() > 1 ||
      count.size > kMaxKnownInts) {
    return std::nullopt;
  }
  return std::vector<Dim>(static_cast<size_t>(count.size));
}

Result<std::vector<int64_t>> NeedInts(const Fact& fact, std::string_view what) {
  if (fact.has_value()) {
    auto ints = ToInt64s(fact.value);
    return ints.ok() ? std::move(ints) : Result<std::vector<int64_t>>(In(ints.status(), what));
  }
  if (AllIntsKnown(fact)) {
    std::vector<int64_t> out;
    for (const Dim& d : *fact.elements) out.push_back(d.size);
    return out;
  }
  return Error(Code::kFailedPrecondition, "the value of ", what, " is not known yet");
}

bool AllIntsKnown(const Fact& fact) {
  if (fact.has_value()) return IsInteger(fact.dtype) || fact.dtype == DType::kBool;
  // A partly known element may be any integer, so a negative size alone does not mean unknown;
  // elements that are known to be negative are carried by whole values only.
  return fact.elements.has_value() && std::all_of(fact.elements->begin(), fact.elements->end(),
                                                  [](const Dim& d) { return d.known(); });
}

}  // namespace oncilla
