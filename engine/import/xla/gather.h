// XLA's Gather and Scatter: windows of a tensor at places that a tensor of indices gives.
#pragma once

#include "engine/import/xla/body.h"

namespace oncilla {

// For Scatter: offset_axes are the updates' window axes, collapsed_axes the inserted ones,
// index_map the operand's axes that an index is of.
struct XlaGatherAxes {
  std::vector<int64_t> offset_axes, collapsed_axes, index_map;
  std::vector<int64_t> operand_batch, index_batch;
  int64_t index_vector_axis = 0;
};

// A window that would extend beyond the operand is moved until it fits. A size of -1 is that of the
// whole axis, for an axis without an index.
Result<ValueId> LowerXlaGather(Lowering& b, ValueId x, ValueId indices, XlaGatherAxes axes,
                               const std::vector<int64_t>& sizes);
// A window that extends beyond the operand is left out.
Result<ValueId> LowerXlaScatter(Lowering& b, ValueId x, ValueId indices, ValueId updates,
                                XlaGatherAxes axes, const Graph& body);

}  // namespace oncilla
