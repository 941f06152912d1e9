// Reductions, on vectors of float where that helps.
#pragma once

#include <span>

#include "backends/cpu/kernel.h"
#include "engine/ops/math/reduce.h"

namespace oncilla::cpu {

// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp and SumSquare of floats, and ReduceSum
// of i32. Null when the node is
// not supported here: other dtypes, or runs too short for vectors.
Result<std::unique_ptr<CpuKernel>> MakeFastReduce(const NodeView& node);

// Where element `index` of a loop nest lies.
inline int64_t OffsetOf(std::span<const ReduceLoops::Axis> axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0; index /= axes[i].size) {
    offset += index % axes[i].size * axes[i].stride;
  }
  return offset;
}
// ReduceSum of i32 by these loops, neither of which is empty; reduce_integers.cc.
std::unique_ptr<CpuKernel> MakeFastIntegerSum(const NodeView& node, ReduceLoops loops);

// ArgMax and ArgMin of numbers that floats represent exactly, with the same result as plain code.
Result<std::unique_ptr<CpuKernel>> MakeFastArg(const NodeView& node);

// TopK of numbers of up to 32 bits, in the order of plain code.
Result<std::unique_ptr<CpuKernel>> MakeFastTopK(const NodeView& node);

}  // namespace oncilla::cpu
