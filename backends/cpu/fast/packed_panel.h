// A panel of weights of few bits, as the kernels of MatMulPacked read it.
#pragma once

#include <cstdint>

namespace oncilla::cpu {

// Bits of a column that lie together in a panel, in bytes.
inline constexpr int64_t kWordBytes = 4;

// `width` columns of weights in blocks along depth. Word i of all columns is at codes + i * width *
// kWordBytes; the words of a block hold its numbers from the lowest bits on, and the last may be
// filled up. The scales and zeros of block b are at b * width.
struct PackedPanel {
  int64_t bits = 4, depth = 0, block = 0, blocks = 0, block_words = 0, width = 0;
  const uint8_t* codes = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;  // null: all are 2^(bits - 1)
};

}  // namespace oncilla::cpu
