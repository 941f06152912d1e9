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
// First one, then the other: Transpose(Transpose(x, first), second).
AxisOrder Compose(const AxisOrder& first, const AxisOrder& second);
AxisOrder Inverse(const AxisOrder& order);
PartialShape Reorder(const PartialShape& shape, const AxisOrder& order);

// True when only axes that surely have size 1 move past others, so that the bytes stay as they are.
bool KeepsBytes(const PartialShape& shape, const AxisOrder& order);

// The order of a Transpose of a tensor of known rank, or of a Reshape which only moves axes of size
// 1; nothing for any other node.
std::optional<AxisOrder> OrderOf(const Graph& graph, const Node& node);

// x, of as many elements, in a shape that differs only in where axes of size 1 stand: as few views
// as it takes. kNoValue when other sizes may differ.
Result<ValueId> AddView(Patch& patch, ValueId x, const PartialShape& to, std::vector<NodeId> from);

// x with its axes in this order: x itself, a view where the bytes stay, else a Transpose.
Result<ValueId> AddTranspose(Patch& patch, ValueId x, const AxisOrder& order,
                             std::vector<NodeId> from);

}  // namespace oncilla
