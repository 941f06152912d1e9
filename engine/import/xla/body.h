// Regions of scalars: what XLA's reductions, scatters and sorts do with two numbers, as a graph of
// canonical ops with a scalar input per argument.
#pragma once

#include <optional>

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// A function of two numbers: the accumulated one, then the new one.
enum class XlaFold { kAdd, kMul, kMax, kMin, kAnd, kOr, kXor, kFirst, kSecond };

// The one op that such a body is; nothing for anything else.
std::optional<XlaFold> FoldOf(const Graph& body);
// The canonical op that folds two tensors of this type; kAdd of truth values is "or", as in XLA.
Result<ValueId> AddFold(Lowering& b, XlaFold fold, ValueId x, ValueId y, std::string_view role);
// Whether a constant scalar leaves every number as it is.
bool IsNeutral(XlaFold fold, const Fact& scalar);

// Adds a body's nodes with tensors instead of scalars; Unimplemented unless all are elementwise.
Result<Values> ApplyBody(Lowering& b, const Graph& body, const Values& arguments,
                         std::string_view role);

// A body of (value, index) pairs, two accumulated and two new: whether it keeps the largest or
// smallest value, NaN before all, with the smallest index among equal values.
enum class XlaPick { kLargest, kSmallest };
std::optional<XlaPick> PickOf(const Graph& body);

}  // namespace oncilla
