// XLA's general product: axes of two tensors are batches, are summed over, or are free.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

struct XlaDotAxes {
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_summed, rhs_summed;
};

// The result's axes are the batches, those of lhs that are free, and those of rhs. Both operands
// are converted to `to` first (the preferred type of the result).
Result<ValueId> LowerXlaDot(Lowering& b, ValueId lhs, ValueId rhs, const XlaDotAxes& axes,
                            DType to);

}  // namespace oncilla
