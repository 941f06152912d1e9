// Sums of products of bytes with the instructions that multiply and add four of them in one step:
// AVX-512 VNNI, and AVX-VNNI for processors without AVX-512. This version of Highway does not
// support them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace oncilla::cpu {

// sums[r][c] = the sum over i < 4 * steps of x[r * step + i] * w[i / 4][c][i % 4], x as u8 and w as
// i8, for `rows` rows (at most QuadSums::rows) and all columns of a panel. Sums wrap around.
using QuadSumsFunction = void (*)(int rows, const std::byte* x, int64_t step, int64_t steps,
                                  const std::byte* w, int32_t* sums);

// The parameters for converting the sums of a tile to bytes, by a rule of requantize.h. Those of
// columns are a panel's.
struct QuadEnd {
  const int32_t* terms = nullptr;  // added to the sums
  const float* scales = nullptr;   // finite
  // The rule of fixed point in floats (fixed_in_floats.h), and in integers where these are not
  // certain; null: the rule of floats.
  const float* halves = nullptr;
  const int32_t *multipliers = nullptr, *shifts = nullptr;
  float most = 0;  // the upper bound of a result before the zero point is added
  int16_t zero = 0;
  // The bounds of a result.
  int16_t least_byte = 0, most_byte = 0;
  bool is_signed = false;
  int columns = 0;  // of the panel, that are stored

  // Moves to the panel that begins at column `first` of n.
  void MoveTo(int64_t first, int64_t n, int64_t panel) {
    terms += first;
    scales += first;
    if (halves != nullptr) {
      halves += first;
      multipliers += first;
      shifts += first;
    }
    columns = static_cast<int>(std::min(panel, n - first));
  }
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
