// Products of bfloat16 whose B is packed as pairs: what gemm.cc hands to tiles of pair_tile.h.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_targets.h"

namespace oncilla::cpu {

// Packs one panel, of which `columns` columns exist. The others are zeros, and so is the second
// number of the last pair if the depth is odd.
void PackPairPanel(const BFloat16* b, int64_t row_step, int64_t column_step, int64_t depth,
                   int64_t columns, BFloat16Pair* to);

// Only if PairTilesHere() is not null, and panels have 32 columns.
void RunPairBlock(const Product<BFloat16, BFloat16Pair>& product, const Block& block);

}  // namespace oncilla::cpu
