// Rules that the inference functions of several families share.
#pragma once

#include <span>
#include <string_view>

#include "engine/ops/fact.h"

namespace oncilla {

// `what` names the input in the message.
Status RequireFloat(const Fact& fact, std::string_view what);
Status RequireNumber(const Fact& fact, std::string_view what);
Status RequireInteger(const Fact& fact, std::string_view what);
Status RequireRank(const Fact& fact, int rank, std::string_view what);
// All present inputs have one dtype.
Status RequireSameDType(std::span<const Fact> in);

// Axes normalised to [0, rank), sorted; duplicates are refused.
Result<std::vector<int>> NormalizeAxes(std::span<const int64_t> axes, int rank);

// Attaches the known part of a small integer result: the whole value when every element is known
// (as a tensor of fact.dtype and fact.shape), else the partly known elements.
Fact WithElements(Fact fact, std::vector<Dim> elements);

// What is known of a shape that is one of the two: sizes that are known to agree stay.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b);

}  // namespace oncilla
