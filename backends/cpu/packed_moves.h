// Types of 4 and 2 bits, several per byte, for kernels that only move elements.
#pragma once

#include <memory>

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Whether an operand is of such a type.
bool HasPacked(const NodeView& node);
// A kernel for `node` that expands each element to a byte of its own, runs `row` on bytes and packs
// the result. The row only moves elements (KernelRow::stored).
Result<std::unique_ptr<CpuKernel>> MakePackedMove(const KernelRow& row, const NodeView& node);

}  // namespace oncilla::cpu
