// Attributes of ops on weights of few bits, which are stored packed.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// MatMulPacked(x[.., depth], weights u8[E?, N, B, block * bits / 8], scales[E?, N, B], zeros?,
// matrix?) -> y[.., N]: x times the transpose of a matrix [N, depth] that is stored in B blocks
// along depth, the last of which may be padded. A weight is (q - zero) * scale of its block, where
// q is an integer of `bits` (2, 4 or 8), the first in the lowest bits of a byte. zeros are packed
// like the weights, u8[E?, N, ceil(B * bits / 8)], or numbers of x's type [E?, N, B]; without them
// every zero is 2^(bits - 1). With `matrix` (i32 or i64, one per row of x) there are E matrices,
// and it selects the one by which each row is multiplied. With round_rows, x may be rounded to 8
// bits where that is faster: each block of a row by its largest magnitude to integers from -127 to
// 127 (what ONNX Runtime does for an accuracy_level of 4).
struct MatMulPackedAttrs {
  int64_t bits = 4;
  int64_t block = 32;
  int64_t depth = 0;
  bool round_rows = false;
  void Fields(auto&& field) {
    field("bits", bits);
    field("block", block);
    field("depth", depth);
    field("round_rows", round_rows);
  }
};

// UnpackBits(x u8[.., n]) -> u8[.., n * 8 / bits]: the integers of `bits` (1, 2 or 4) in each byte,
// starting with the lowest bits.
struct UnpackBitsAttrs {
  int64_t bits = 4;
  void Fields(auto&& field) { field("bits", bits); }
};

}  // namespace oncilla
