// Reading, carrying and multiplying integers of which only some are known.
#include "engine/ops/known_ints.h"

#include <algorithm>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

bool SaysSomething(const std::vector<Dim>& elements) {
  return elements.empty() || std::any_of(elements.begin(), elements.end(),
                                         [](const Dim& d) { return d.known() || !d.name.empty(); });
}

}  // namespace

std::optional<std::vector<KnownInt>> ReadKnownInts(const Fact& fact) {
  const auto dims = KnownInts(fact);
  if (!dims.has_value()) return std::nullopt;
  const bool whole = fact.has_value();
  std::vector<KnownInt> out;
  for (const Dim& d : *dims) {
    KnownInt known;
    if (whole || d.known()) known.value = d.size;
    known.dim = d.known() ? d : Dim::Named(d.name);
    out.push_back(std::move(known));
  }
  return out;
}

std::optional<std::vector<Dim>> CarriedElements(const Fact& fact) {
  if (!IsInteger(fact.dtype)) return std::nullopt;
  const auto ints = ReadKnownInts(fact);
  if (!ints.has_value()) return std::nullopt;
  std::vector<Dim> out;
  for (const KnownInt& i : *ints) out.push_back(i.dim);
  if (!SaysSomething(out)) return std::nullopt;
  return out;
}

Fact WithCarried(Fact fact, std::optional<std::vector<Dim>> elements) {
  if (!elements.has_value() || static_cast<int64_t>(elements->size()) > kMaxKnownInts ||
      !IsInteger(fact.dtype)) {
    return fact;
  }
  if (!SaysSomething(*elements)) return fact;
  return WithElements(std::move(fact), *std::move(elements));
}

Fact SameElements(const Fact& in, PartialShape shape) {
  Fact out = Fact::Of(in.dtype, std::move(shape));
  if (in.has_value() && out.shape.known() &&
      out.shape.ToShape().elements() == in.value.elements()) {
    out.value = in.value.Reshaped(out.shape.ToShape());
  } else if (in.elements.has_value() && out.shape.ranked() && out.shape.rank() <= 1) {
    out.elements = in.elements;
  }
  return out;
}

Dim ProductOf(std::span<const Dim> dims) {
  int64_t known = 1;
  const Dim* open = nullptr;
  int open_count = 0;
  for (const Dim& d : dims) {
    if (d.known()) {
      if (d.size == 0) return Dim(0);
      known = SaturatingMul(known, d.size);
    } else {
      open = &d;
      ++open_count;
    }
  }
  if (open_count == 0) return Dim(known);
  return open_count == 1 && known == 1 ? *open : Dim();
}

Result<std::vector<int64_t>> IntsOr(std::span<const Fact> in, size_t i, std::string_view what,
                                    std::vector<int64_t> otherwise) {
  if (!Given(in, i)) return otherwise;
  return NeedInts(in[i], what);
}

}  // namespace oncilla
