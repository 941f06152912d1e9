// Partly known integers, for the inference of ops that compute shapes.
//
// A known integer may be negative if it comes from a known value (a -1 in a shape), but not if it
// comes from Fact::elements, whose Dims can only represent sizes.
#pragma once

#include <optional>
#include <vector>

#include "engine/ops/fact.h"

namespace oncilla {

struct KnownInt {
  std::optional<int64_t> value;
  Dim dim;  // as a size: known when the value is and is not negative, else maybe a name
};

// The integers of a fact of rank 0 or 1; nothing when not even their number is known.
std::optional<std::vector<KnownInt>> ReadKnownInts(const Fact& fact);

// The part of an integer fact of rank 0 or 1 that inference can propagate: Dims in which negative
// integers are unknown. Nothing when no element is known or named.
std::optional<std::vector<Dim>> CarriedElements(const Fact& fact);

// `fact` with these elements, if any is known or named and they are few enough to propagate.
Fact WithCarried(Fact fact, std::optional<std::vector<Dim>> elements);

// The fact of the elements of `in`, in the same order, in another shape.
Fact SameElements(const Fact& in, PartialShape shape);

// The product of sizes: known, or a name when all other sizes are 1.
Dim ProductOf(std::span<const Dim> dims);

// The value of an optional plan input; `otherwise` when it is absent.
Result<std::vector<int64_t>> IntsOr(std::span<const Fact> in, size_t i, std::string_view what,
                                    std::vector<int64_t> otherwise);

inline bool Given(std::span<const Fact> in, size_t i) { return i < in.size() && !in[i].absent(); }

}  // namespace oncilla
