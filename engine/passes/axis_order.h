// AxisOrder: a permutation of the axes of a tensor, and Transpose nodes in terms of it.
//
// The convention is that of Transpose: axis i of the result is axis order[i] of the input.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/patch.h"

namespace oncilla {

using AxisOrder = std::vector<int>;

AxisOrder SameOrder(int rank);  // 0, 1, 2, ..
bool IsSameOrder(const AxisOrder& order);
// The composition of both, `first` first: Transpose(Transpose(x, first), second).
AxisOrder Compose(const AxisOrder& first, const AxisOrder& second);
AxisOrder Inverse(const AxisOrder& order);
PartialShape Reorder(const PartialShape& shape, const AxisOrder& order);

// Whether only axes of known size 1 move past others, so that the order of the bytes does not
// change.
bool KeepsBytes(const PartialShape& shape, const AxisOrder& order);

// The order of a Transpose of a tensor of known rank, or of a Reshape that only moves axes of size
// 1; nothing for any other node.
std::optional<AxisOrder> OrderOf(const Graph& graph, const Node& node);

// A view of x with shape `to`, which must differ only in the position of axes of size 1; adds as
// few nodes as possible. kNoValue when other sizes may differ.
Result<ValueId> AddView(Patch& patch, ValueId x, const PartialShape& to, std::vector<NodeId> from);

// x with its axes in this order: x itself, a view if the bytes do not move, else a Transpose.
Result<ValueId> AddTranspose(Patch& patch, ValueId x, const AxisOrder& order,
                             std::vector<NodeId> from);

}  // namespace oncilla
