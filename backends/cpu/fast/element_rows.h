// The table of elementwise expressions as functions on tiles.
#pragma once

#include "backends/cpu/fast/tiles.h"
#include "engine/ops/math/elementwise.h"

namespace oncilla::cpu {

// Computes n elements. Operands are tiles of the compute dtype's wide type (x of bool if the row's
// first operand is a condition); so is the result, or it is 0 and 1 in uint64_t for a condition.
// The result may be an operand's tile.
using TileFunction = void (*)(const Tile* const* in, Tile* out, int64_t n,
                              const ElementwiseCall& call);

// Null if the row does not accept the dtype.
TileFunction TileFunctionOf(const ElementwiseRow& row, DType compute);

}  // namespace oncilla::cpu
