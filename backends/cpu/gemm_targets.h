// The part of a product that is compiled once per instruction set, as a table of functions.
#pragma once

#include "backends/cpu/gemm.h"

namespace oncilla::cpu {

// A rectangle of tiles: tiles [first_tile, last_tile) counted over all lines, panels [first_panel,
// last_panel).
struct Block {
  int64_t first_tile, last_tile, first_panel, last_panel;
  bool panels_outside;  // stay with a panel for all tiles, rather than with a tile for all panels
};

struct GemmTarget {
  const char* name;  // "14x32 AVX3"
  int tile_rows, tile_columns;
  void (*run)(const Product&, const Block&);
  void (*pack)(const float* b, int64_t row_step, int64_t column_step, int64_t depth,
               int64_t columns, float* to);
  float (*dot)(const float* a, const float* b, int64_t count);
};

// Tiles of one line of a product.
inline int64_t TilesPerLine(const Product& p, int tile_rows) {
  return (p.line_rows + tile_rows - 1) / tile_rows;
}

const GemmTarget& Target();

}  // namespace oncilla::cpu
