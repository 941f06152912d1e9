// The part of a product that is compiled once per instruction set, as a table of functions.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {

// A rectangle of tiles: tiles [first_tile, last_tile) counted over all lines, panels [first_panel,
// last_panel).
struct Block {
  int64_t first_tile, last_tile, first_panel, last_panel;
  bool panels_outside;  // stay with a panel for all tiles, rather than with a tile for all panels
};

// The functions that depend on how elements are stored.
template <class T>
struct GemmFunctions {
  void (*run)(const Product<T>&, const Block&);
  void (*run_wide)(const Product<float, T>&, const Block&);
  void (*pack)(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
               T* to);
  float (*dot)(const T* a, const T* b, int64_t count);
};

struct GemmTarget {
  const char* name;  // "14x32 AVX3"
  int tile_rows, tile_columns;
  GemmFunctions<float> floats;
  GemmFunctions<Half> halves;
  GemmFunctions<BFloat16> bfloats;
  // In place: `rows` rows of `count` numbers, `step` apart.
  void (*activate)(Activation, float* c, int64_t step, int rows, int64_t count);
};

template <class T>
const GemmFunctions<T>& FunctionsFor(const GemmTarget& target) {
  if constexpr (std::is_same_v<T, Half>) {
    return target.halves;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return target.bfloats;
  } else {
    return target.floats;
  }
}

// Number of panels that a tile of so many rows computes at once: a single panel of few rows has too
// few sums to hide the latency of a multiplication.
constexpr int PanelsAtOnce(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// Tiles of one line of a product.
inline int64_t TilesPerLine(const ProductSizes& p, int tile_rows) {
  return (p.line_rows + tile_rows - 1) / tile_rows;
}

// The position of a tile: its number of rows, and the offset of its first row in A and in C.
struct TilePlace {
  int rows;
  int64_t a, c;
};
// Tiles of a line have nearly equal heights: 49 rows are 13 + 12 + 12 + 12.
// Consecutive taps; whether they are the first and the last ones of a tile.
struct TapRun {
  int64_t first, count;
  bool begins, ends;
};
// The taps that any row of a tile sees; one run of none where there are none.
inline void FindSeenTaps(const ProductSizes& p, int64_t tiles_per_line, int64_t tile,
                         std::vector<TapRun>& runs) {
  const int64_t line = tile / tiles_per_line, part = tile % tiles_per_line;
  const SeenTaps& seen = *p.seen;
  const auto at = [&](int axis, int64_t i) { return seen.axis[axis][static_cast<size_t>(i)]; };
  const SeenTaps::Range outer = at(0, line / p.line_count[2] % p.line_count[1]);
  const SeenTaps::Range middle = at(1, line % p.line_count[2]);
  const SeenTaps::Range first = at(2, p.line_rows * part / tiles_per_line);
  const SeenTaps::Range last = at(2, p.line_rows * (part + 1) / tiles_per_line - 1);
  const int64_t begin = std::min(first.begin, last.begin), end = std::max(first.end, last.end);
  runs.clear();
  for (int64_t i = outer.begin; i < outer.end && begin < end; ++i) {
    for (int64_t j = middle.begin; j < middle.end; ++j) {
      const int64_t tap = (i * seen.count[1] + j) * seen.count[2] + begin;
      if (!runs.empty() && runs.back().first + runs.back().count == tap) {
        runs.back().count += end - begin;
      } else {
        runs.push_back({tap, end - begin, runs.empty(), false});
      }
    }
  }
  if (runs.empty()) runs.push_back({0, 0, true, false});
  runs.back().ends = true;
}
inline TilePlace PlaceOf(const ProductSizes& p, int64_t tiles_per_line, int64_t tile) {
  const int64_t line = tile / tiles_per_line, part = tile % tiles_per_line;
  const int64_t row = p.line_rows * part / tiles_per_line;
  const int64_t l2 = line % p.line_count[2], l1 = line / p.line_count[2] % p.line_count[1];
  const int64_t l0 = line / p.line_count[2] / p.line_count[1];
  return {static_cast<int>(p.line_rows * (part + 1) / tiles_per_line - row),
          l0 * p.line_step[0] + l1 * p.line_step[1] + l2 * p.line_step[2] + row * p.row_step,
          l0 * p.c_line_step[0] + l1 * p.c_line_step[1] + l2 * p.c_line_step[2] + row * p.c_step};
}

const GemmTarget& Target();

}  // namespace oncilla::cpu
