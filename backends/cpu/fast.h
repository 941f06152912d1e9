// Makers of the fast kernels: what the rows of the plain ones name as `fast` and `packing`.
//
// A maker returns null where only the plain kernel will do. A packing depends on attributes and the
// constant alone, so a maker accepts every node whose constant was packed, unless the result is
// empty.
#pragma once

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

Result<std::unique_ptr<CpuKernel>> MakeFastMatMul(const NodeView& node);
Result<Packing> MatMulPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastConv(const NodeView& node);
Result<Packing> ConvPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastMaxPool(const NodeView& node);
Result<std::unique_ptr<CpuKernel>> MakeFastAveragePool(const NodeView& node);

Result<std::unique_ptr<CpuKernel>> MakeFastRecurrent(const NodeView& node);
Result<Packing> RecurrentPacking(const NodeView& node, int input);

Result<std::unique_ptr<CpuKernel>> MakeFastResize(const NodeView& node);

}  // namespace oncilla::cpu
