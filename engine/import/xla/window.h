// XLA's reductions over windows.
#pragma once

#include "engine/import/xla/body.h"
#include "engine/import/xla/shape.h"

namespace oncilla {

// One entry per axis of the operand; empty lists mean ones, or zeros.
struct XlaWindow {
  std::vector<int64_t> size, strides, base_dilation, dilation, low, high;
};

// Bodies that are one op become pools or running sums; others, and windows that pools do not have,
// are folded element by element of the window if it is small.
Result<Values> LowerXlaReduceWindow(Lowering& b, const Values& operands, const Values& inits,
                                    XlaWindow window, const Graph& body);

// A running sum or product along an axis of open size: what windows as long as that axis are, if
// all other sizes, strides and dilations are one. `size` and `padding` are computed while running,
// and padding other than that of a sum from the first element on fails the run.
Result<Values> LowerXlaRunning(Lowering& b, ValueId x, ValueId init, ValueId size, ValueId padding,
                               const Graph& body);

}  // namespace oncilla
