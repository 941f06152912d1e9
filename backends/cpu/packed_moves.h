// Types of 4 and 2 bits, several to a byte, through kernels that only move elements.
#pragma once

#include <memory>

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// True where an operand is of such a type.
bool HasPacked(const NodeView& node);
// A kernel for `node` that gives each element a byte of its own, runs what `row` has for bytes and
// packs again. The row moves elements alone (KernelRow::stored).
Result<std::unique_ptr<CpuKernel>> MakePackedMove(const KernelRow& row, const NodeView& node);

}  // namespace oncilla::cpu
