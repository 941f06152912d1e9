// Rows of a depthwise convolution of bytes by the instruction that multiplies and adds four bytes
// in one step (AVX-512 VNNI), requantised in registers. Windows are three wide and see at most four
// lines of the input:
//
//   lines  l0: a0 a1 a2 ..        a column of the input, all lines of it, is interleaved once:
//          l1: b0 b1 b2 ..          a1 b1 c1 0   for each channel
//          l2: c0 c1 c2 ..        and multiplied by a column of weights in one step for each of the
//          (zero weights)         windows that see it.
//
// This version of Highway does not support these instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/integer/requantize.h"

namespace oncilla::cpu {

inline constexpr int64_t kQuadLines = 4, kQuadWidth = 3;

// How channels are divided into blocks of `width` (32 or 64) that start at `first`: the last one
// begins early enough to be full, unless there are fewer channels than that.
struct QuadBlock {
  int64_t first = 0, width = 0, count = 0;
};
// The block that begins at index `at` of the packed channels; indices are from 0 to QuadPlaces().
QuadBlock QuadBlockAt(int64_t at, int64_t channels);
int64_t QuadPlaces(int64_t channels);
// The channel at index `i` < width of a block, in the order in which sums are in registers.
int64_t QuadChannel(const QuadBlock& block, int64_t i);

// Weights [lines][kQuadWidth][channels] for QuadRow: QuadBytes(channels) bytes.
int64_t QuadBytes(int64_t channels);
void PackQuads(const int8_t* weights, int64_t lines, int64_t channels, std::byte* to);

// A row of the output.
struct QuadRow {
  const std::byte* lines[kQuadLines] = {};  // null if one lies outside of the input
  const std::byte* outside = nullptr;       // a pixel of zero points
  int64_t channels = 0;
  int64_t in = 0, out = 0, stride = 1;  // pixels
  int64_t pad = 0;                      // pixels before the first one of the input
  bool is_signed = false;               // x is i8
  const std::byte* weights = nullptr;
  // In the packed order of channels: terms added to sums of x as u8 (i8 plus 128), and factors.
  const int32_t* terms = nullptr;
  const float* scales = nullptr;
  // The rule of fixed point, as QuadEnd of quad_sums.h has it; null: the rule of floats.
  const float* halves = nullptr;
  const int32_t *multipliers = nullptr, *shifts = nullptr;
  float least = 0, most = 0;  // before the zero point is added
  int32_t zero = 0;
  bool y_signed = false;
  std::byte* y = nullptr;
};

// Null if this processor does not have these instructions.
using QuadRowFunction = void (*)(const QuadRow&);
QuadRowFunction QuadRowHere();

}  // namespace oncilla::cpu
