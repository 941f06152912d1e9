// The numbers by which recipes choose: sizes of groups and tiles, and thresholds between methods.
//
// They choose between methods with the same result, up to the rounding of sums; only topk_most
// leaves nodes to the CPU. They are in one table with a column per class of device (KernelShape),
// so that a recipe names what it compares and tuning.cc has the number, and its reason if that is
// known.
#pragma once

#include <algorithm>
#include <span>

#include "backends/opencl/runtime/capabilities.h"

namespace oncilla::opencl {

// Some drivers count groups beyond the first axis in 16 bits.
constexpr int64_t kMostGroups = 65535;

// A tile of a product (common/tile.clh): sums of a lane, warps of 32 lanes and the arrangement of a
// warp's lanes, k's of a slice. `matrix`: for a matrix unit (common/matrix_tile.clh), the bytes of
// an operand for each k: 2, or 4 if k's are words of bytes. Without local memory, a tile is that of
// matmul/sub_group.cl, whose warp is a sub-group of `sub_group` lanes, each with tm x tn sums.
struct Tile {
  int64_t tm, tn, warps_m, warps_n, lanes_m, slice, sub_group = 0;
  int64_t matrix = 0;
  constexpr int64_t lanes() const { return sub_group > 0 ? sub_group : 32; }
  constexpr int64_t threads() const { return lanes() * warps_m * warps_n; }
  constexpr int64_t rows() const { return warps_m * lanes_m * tm; }
  constexpr int64_t columns() const { return warps_n * (lanes() / lanes_m) * tn; }
  // Two buffers of both slices, at the widest pitches; for a matrix unit also the exchange buffer
  // if it is emulated.
  constexpr int64_t local_bytes() const {
    if (sub_group > 0) return 0;
    if (matrix == 0) return 2 * slice * (rows() + 4 + columns() + 4) * 4;
    const int64_t apart = 16 * std::max({slice * matrix / 2, rows(), columns()});
    return 2 * (slice * matrix * (rows() + columns()) + 2 * apart) + 24 * threads();
  }
  friend bool operator==(const Tile&, const Tile&) = default;
};

// The cost of a group on one core, in its clock cycles: a slice when the group is alone, a slice
// per group when as many are resident as fit; and what is outside of the loop.
struct TileCost {
  double alone, full;
  int64_t resident;
  double outside;
};
struct TileRow {
  Tile tile;
  TileCost cost;
};

// The registers of one work-item of matmul/panels.cl: floats of a vector, and rows.
struct PanelShape {
  int64_t vector, most_rows;
};

struct Tuning {
  // Work-items of a group if each does little (elementwise, moves), and if each has a loop of its
  // own (pools, lines, general products).
  int64_t flat_group, loop_group;
  // Rows shorter than this do not justify an axis of work-items or a group of their own.
  int64_t short_row;

  // Whether a work-item computes a whole row with wide vectors (norms, pools, reductions).
  bool lines;
  int64_t line_items;  // elements that a group of an elementwise program takes there

  // Transposes: tiles in local memory, blocks of one work-item, rows of a tile at a time, and the
  // shortest axis for either.
  int64_t transpose_tile, transpose_block, transpose_rows, transpose_least;
  // The longest axis that a transpose reads as a whole, and how many indices of the other axis.
  int64_t transpose_few, transpose_few_block;

  // Products: whether this class uses panels or tiles.
  bool panels;
  std::span<const TileRow> tiles;
  std::span<const TileRow> byte_tiles;  // of products of integers, by the costs of floats
  // With a matrix unit: for 16-bit operands, and for bytes.
  std::span<const TileRow> matrix_tiles, matrix_byte_tiles;
  // If not 0: products from registers alone, in groups of so many work-items; no tiles.
  int64_t registers_x, registers_y;
  int64_t register_quads, register_conv_quads;  // of columns of a work-item there, 1 or 2
  int64_t tile_unroll;                          // k's of a slice that are unrolled, at most
  int64_t tile_least_columns;                   // of a convolution
  int64_t part_least;                           // k's of each part, where K is divided among groups
  int64_t most_parts;                           // of K
  double launch_clocks;  // from the end of a launch to the start of the next one
  double cache_bytes;    // per clock and core, from the cache that all cores share
  // Bytes of memory beyond that cache, per clock and core; and what the cache holds per core, on
  // devices of fewer than `many_cores` and of more.
  double memory_bytes;
  int64_t shared_cache, many_cores, shared_cache_of_many;
  // Products of few rows: work-items of a group, rows that share what is read, and the most rows.
  int64_t column_group, column_rows, column_most_rows;
  int64_t transform_group;       // work-items of a group in Winograd's transforms
  double panel_flops;            // of a work-item
  int64_t panel_items_per_unit;  // at least, if there are as many tiles

  // Depthwise convolutions: pixels side by side; whether a work-item takes a whole row; groups
  // where there are at least `depthwise_many` vectors of channels, and where there are fewer.
  int64_t depthwise_pixels;
  bool depthwise_rows;
  int64_t depthwise_many, depthwise_group, depthwise_small_group;

  // Rows that a group reduces: elements per work-item.
  int64_t row_elements;
  int64_t held_elements;  // of a row that a work-item keeps in registers, at most
  // Sets that a group reduces: elements of each part where outputs lie side by side, and how many
  // of these one group takes; then what makes a set worth two launches: more than so many elements
  // for a work-item, and groups for a core at most.
  int64_t column_elements, columns_per_group;
  int64_t item_elements, reduce_groups_per_core;
  // TopK: elements of a chunk, and the largest k of an axis that is longer than a chunk.
  int64_t topk_chunk, topk_most;

  // Scatters that add up: work-items in all (or per compute unit, if not 0), the most classes of
  // rows, and from how many elements of a row on groups are larger than one.
  int64_t scatter_items, scatter_items_per_unit, scatter_classes, scatter_grouped;
};

// The column of the device's class.
const Tuning& TuningOf(const Capabilities& caps);
// By the device's vectors.
const PanelShape& PanelOf(const Capabilities& caps);

}  // namespace oncilla::opencl
