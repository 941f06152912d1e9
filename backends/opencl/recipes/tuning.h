// The numbers that recipes choose by: sizes of groups and tiles, and from where on a way pays.
//
// They choose between ways to the same result, up to the rounding of sums; topk_most alone leaves
// nodes to the CPU. They stand in one table with a column per class of device (KernelShape), so
// that a recipe says what it weighs and tuning.cc says with which number, and why where that is
// known.
#pragma once

#include <algorithm>
#include <span>

#include "backends/opencl/runtime/capabilities.h"

namespace oncilla::opencl {

// Some drivers count groups beyond the first axis in 16 bits.
constexpr int64_t kMostGroups = 65535;

// A tile of a product (common/tile.clh): sums of a lane, warps of 32 lanes and how a warp's lanes
// lie, k's of a slice. `matrix`: on a matrix unit (common/matrix_tile.clh), the bytes that an
// operand has for each k: 2, or 4 where k's are words of bytes. Or, without local memory, that of
// matmul/sub_group.cl, of which a warp is a sub-group of `sub_group` lanes, each with tm x tn sums.
struct Tile {
  int64_t tm, tn, warps_m, warps_n, lanes_m, slice, sub_group = 0;
  int64_t matrix = 0;
  constexpr int64_t lanes() const { return sub_group > 0 ? sub_group : 32; }
  constexpr int64_t threads() const { return lanes() * warps_m * warps_n; }
  constexpr int64_t rows() const { return warps_m * lanes_m * tm; }
  constexpr int64_t columns() const { return warps_n * (lanes() / lanes_m) * tn; }
  // Two buffers of both slices, at the widest pitches; beside a matrix unit's what is exchanged
  // where it is written out.
  constexpr int64_t local_bytes() const {
    if (sub_group > 0) return 0;
    if (matrix == 0) return 2 * slice * (rows() + 4 + columns() + 4) * 4;
    const int64_t apart = 16 * std::max({slice * matrix / 2, rows(), columns()});
    return 2 * (slice * matrix * (rows() + columns()) + 2 * apart) + 24 * threads();
  }
  friend bool operator==(const Tile&, const Tile&) = default;
};

// What a group costs one core, in its clocks: a slice where the group is alone and, of each group,
// where as many are resident as fit; and what stands outside of the loop.
struct TileCost {
  double alone, full;
  int64_t resident;
  double outside;
};
struct TileRow {
  Tile tile;
  TileCost cost;
};

// What one work-item of matmul/panels.cl holds in registers: floats of a vector, and rows.
struct PanelShape {
  int64_t vector, most_rows;
};

struct Tuning {
  // Work-items of a group where each has little to do (elementwise, moves), and where each has a
  // loop of its own (pools, lines, general products).
  int64_t flat_group, loop_group;
  // Rows shorter than this are not worth an axis of work-items or a group of their own.
  int64_t short_row;

  // Whether a work-item takes a whole row with wide vectors (norms, pools, reductions).
  bool lines;
  int64_t line_items;  // elements that a group of an elementwise program takes there

  // Transposes: tiles in local memory, blocks of one work-item, rows of a tile at a time, and the
  // shortest axis that is worth either.
  int64_t transpose_tile, transpose_block, transpose_rows, transpose_least;
  // The longest axis that a transpose takes as a whole, and how many places of the other axis.
  int64_t transpose_few, transpose_few_block;

  // Products: whether panels or tiles are the way of this class.
  bool panels;
  std::span<const TileRow> tiles;
  std::span<const TileRow> byte_tiles;  // of products of integers, by the costs of floats
  // Where there is a matrix unit: of 16-bit operands, and of bytes.
  std::span<const TileRow> matrix_tiles, matrix_byte_tiles;
  // Where not 0: products out of registers alone, in groups of so many work-items; no tiles.
  int64_t registers_x, registers_y;
  int64_t register_quads, register_conv_quads;  // of columns of a work-item there, 1 or 2
  int64_t tile_unroll;         // k's of a slice that stand side by side in the code, at most
  int64_t tile_least_columns;  // of a convolution
  int64_t part_least;          // k's of each part, where K is divided among groups
  int64_t most_parts;          // of K
  double launch_clocks;        // from the end of a launch to the begin of the next one
  double cache_bytes;          // that a core gets out of the cache that all share, per clock
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

  // Rows that a group reduces: elements of each work-item.
  int64_t row_elements;
  int64_t held_elements;  // that a work-item keeps of a row in registers, at most
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
