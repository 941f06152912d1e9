// Products of bfloat16 whose B is packed as pairs: what gemm.cc hands to tiles of pair_tile.h.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_targets.h"

namespace oncilla::cpu {

// One panel; `columns` of it are there. The others are zeros, and so is the second of the last pair
// where the depth is odd.
void PackPairPanel(const BFloat16* b, int64_t row_step, int64_t column_step, int64_t depth,
                   int64_t columns, BFloat16Pair* to);

// Only where PairTilesHere() are, and panels are of 32 columns.
void RunPairBlock(const Product<BFloat16, BFloat16Pair>& product, const Block& block);

}  // namespace oncilla::cpu
