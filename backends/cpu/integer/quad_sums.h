// Sums of products of bytes with the instructions that multiply and add four of them in one step:
// AVX-512 VNNI, and AVX-VNNI for processors without AVX-512. This version of Highway does not
// support them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla::cpu {

// sums[r][c] = the sum over i < 4 * steps of x[r * step + i] * w[i / 4][c][i % 4], x as u8 and w as
// i8, for `rows` rows (at most QuadSums::rows) and all columns of a panel. Sums wrap around.
using QuadSumsFunction = void (*)(int rows, const std::byte* x, int64_t step, int64_t steps,
                                  const std::byte* w, int32_t* sums);

// The parameters for converting the sums of a tile to bytes: the float rule of requantize.h.
struct QuadEnd {
  const int32_t* terms = nullptr;  // a panel's, added to the sums
  const float* scales = nullptr;   // a panel's, finite
  float most = 0;                  // the upper bound of a result before the zero point is added
  int16_t zero = 0;
  // The bounds of a result.
  int16_t least_byte = 0, most_byte = 0;
  bool is_signed = false;
  int columns = 0;  // of the panel, that are stored
};
// The same sums as bytes, row r at y + r * y_step.
using QuadBytesFunction = void (*)(int rows, const std::byte* x, int64_t step, int64_t steps,
                                   const std::byte* w, const QuadEnd& end, std::byte* y,
                                   int64_t y_step);

struct QuadSums {
  QuadSumsFunction run = nullptr;            // null: this processor has no such instructions
  QuadBytesFunction run_to_bytes = nullptr;  // or null
  int rows = 0;                              // of a tile
  int panel = 0;                             // columns: two vectors of sums
};
// The sums by the best instruction set that Highway may choose as well.
const QuadSums& QuadSumsHere();

}  // namespace oncilla::cpu
