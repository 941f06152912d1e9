// The table of tuning.h. Each number has the reason that was given with it or that follows from its
// kernel. "Unmeasured" stands where neither is known: the number was chosen with the kernel, the
// comment says what it weighs, and a measurement may well move it.
#include "backends/opencl/recipes/tuning.h"

namespace oncilla::opencl {
namespace {

// The smaller ones are for small products, small groups and little local memory. Unmeasured.
constexpr TileChoice kTiles[] = {{16, 16, 8, 8}, {16, 16, 8, 4}, {16, 16, 4, 4}, {16, 16, 2, 4},
                                 {16, 16, 2, 2}, {8, 8, 2, 2},   {4, 4, 2, 2, 8}};

// As many rows as leave the registers room for two vectors of B and one of A.
constexpr PanelShape kPanels[] = {{16, 8}, {8, 6}, {4, 4}};

constexpr Tuning kGpu = {
    // Few sizes of groups: some drivers compile a kernel anew for each. The two sizes: unmeasured.
    .flat_group = 256,
    .loop_group = 64,
    .short_row = 32,  // less would leave most of a group idle
    // 8 rows of 32 work-items are one group of flat_group. Sides of tiles and blocks: unmeasured.
    .transpose_tile = 32,
    .transpose_block = 16,
    .transpose_rows = 8,
    .transpose_least = 8,  // of 32: a shorter axis leaves more than three quarters of a tile empty
    .panels = false,
    .tiles = kTiles,
    .tile_groups_per_unit = 2,  // enough to keep every compute unit busy
    .tile_least_columns = 8,    // fewer would lie mostly beyond the edge of a tile; unmeasured
    .panel_flops = 2e5,         // a work-item should be worth some microseconds of one core
    .panel_items_per_unit = 8,  // few items would leave cores idle at the end
    // Neighbours share their windows, more of them need more registers. Unmeasured.
    .depthwise_pixels = 4,
    .depthwise_rows = false,  // a GPU wants many small pieces
    // Groups along channels, smaller where few vectors would fill them. Unmeasured.
    .depthwise_many = 32,
    .depthwise_group = 64,
    .depthwise_small_group = 16,
    // A few elements for each work-item, before partial results are joined. Unmeasured.
    .row_elements = 4,
    .column_elements = 16,
    .columns_per_group = 64,
    // Enough groups to fill a device; more pieces only where they stay long. Unmeasured.
    .piece_elements = 16384,
    .reduce_groups_per_unit = 16,
    // The kernel's work is the elements times the chunk, which holds 2 k at least. Unmeasured.
    .topk_chunk = 4096,
    .topk_most = 8192,
    // Enough work-items for the device, each of which reads all indices. Unmeasured.
    .scatter_items = 16384,
    .scatter_items_per_unit = 0,
    .scatter_classes = 1024,
    .scatter_grouped = 0,
};

constexpr Tuning kCpu = [] {
  Tuning t = kGpu;
  t.panels = true;          // one work-item per group, wide private vectors, packed operands
  t.depthwise_rows = true;  // a core takes a whole row
  t.depthwise_group = t.depthwise_small_group = 1;
  // A few work-items for each core, in groups of one unless rows are long. Unmeasured.
  t.scatter_items = 0;
  t.scatter_items_per_unit = 4;
  t.scatter_grouped = 64;
  return t;
}();

}  // namespace

const Tuning& TuningOf(const Capabilities& caps) {
  return caps.shape == KernelShape::kCpu ? kCpu : kGpu;
}

const PanelShape& PanelOf(const Capabilities& caps) {
  return kPanels[caps.vector_width >= 16 ? 0 : caps.vector_width >= 8 ? 1 : 2];
}

}  // namespace oncilla::opencl
