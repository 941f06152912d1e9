// Products of few rows with weights of few bits, where the rows may be rounded to bytes (ONNX
// Runtime's accuracy_level 4): sums of products of bytes by AVX-512 VNNI or AVX2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/fast/packed_panel.h"

namespace oncilla::cpu {

// Rows of x as whole numbers from -127 to 127 times a scale for each block.
struct RoundedRows {
  int64_t rows = 0;
  // [row][block][word of the panel][32 bits]: for each place of a number in a byte of packed words,
  // the four numbers of x that the word's bytes are multiplied with.
  std::vector<int32_t> quads;
  std::vector<float> scales;  // [row][block]
  std::vector<int32_t> sums;  // of the whole numbers, [row][block]
};

// x[rows, depth] rounded for panels like `panel`: each block by its largest magnitude, to the
// nearest, ties to even. None where x is not finite.
std::optional<RoundedRows> RoundRows(const float* x, int64_t rows, const PackedPanel& panel);

// y[row][column] = the product, for all columns of a panel; the rows of y are y_step apart.
using MultiplyRounded = void (*)(const PackedPanel& panel, const RoundedRows& x, float* y,
                                 int64_t y_step);
// The fastest on this processor for weights of so many bits in panels of `width` columns; null
// where there is none.
MultiplyRounded MultiplyRoundedFor(int64_t bits, int64_t width);

}  // namespace oncilla::cpu
