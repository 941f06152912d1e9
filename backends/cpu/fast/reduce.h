// Reductions, on vectors of float where that helps.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp and SumSquare. Null when the node is
// not supported here: other dtypes, or runs too short for vectors.
Result<std::unique_ptr<CpuKernel>> MakeFastReduce(const NodeView& node);

// ArgMax and ArgMin of numbers that floats represent exactly, with the same result as plain code.
Result<std::unique_ptr<CpuKernel>> MakeFastArg(const NodeView& node);

// TopK of numbers of up to 32 bits, in the order of plain code.
Result<std::unique_ptr<CpuKernel>> MakeFastTopK(const NodeView& node);

}  // namespace oncilla::cpu
