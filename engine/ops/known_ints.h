// Partly known integers, for the inference of ops that shapes are computed with.
//
// A known integer may be negative where it comes from a whole value (a -1 in a shape), but not
// where it comes from Fact::elements, whose Dims can only carry sizes.
#pragma once

#include <optional>
#include <vector>

#include "engine/ops/fact.h"

namespace oncilla {

struct KnownInt {
  std::optional<int64_t> value;
  Dim dim;  // the same as a size: known when the value is and is not negative, else maybe a name
};

// The integers of a fact of rank 0 or 1; nothing when not even their number is known.
std::optional<std::vector<KnownInt>> ReadKnownInts(const Fact& fact);

// What inference may carry on of an integer fact of rank 0 or 1: Dims in which negative integers
// are unknown. Nothing when no element is known or named.
std::optional<std::vector<Dim>> CarriedElements(const Fact& fact);

// `fact` with these elements, if they say anything and are few enough to carry.
Fact WithCarried(Fact fact, std::optional<std::vector<Dim>> elements);

// The fact of `in`'s elements, in the same order, under another shape.
Fact SameElements(const Fact& in, PartialShape shape);

// The product of sizes: known, or a name when everything else is 1.
Dim ProductOf(std::span<const Dim> dims);

// The whole value of an optional plan input, `otherwise` when it is absent.
Result<std::vector<int64_t>> IntsOr(std::span<const Fact> in, size_t i, std::string_view what,
                                    std::vector<int64_t> otherwise);

inline bool Given(std::span<const Fact> in, size_t i) { return i < in.size() && !in[i].absent(); }

}  // namespace oncilla
