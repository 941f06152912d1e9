// The table of tuning.h. Each number has the reason that was recorded with it or that follows from
// its kernel. "Unmeasured" marks numbers that were chosen with the kernel and never measured: the
// comment says what they trade, and a measurement may well change them.
#include "backends/opencl/recipes/tuning.h"

#include <algorithm>
#include <array>

namespace oncilla::opencl {
namespace {

// Tiles with their costs. The costs were not measured. They come from an instruction model
// (registers, resident groups, issue slots and local memory of the kernels as compiled for sm_86,
// gfx1030, gfx90a and dg2 by the vendors' compilers), which is good enough for ranking tiles: to
// some 15 % for large products, and to a factor of 1.5 for small ones. No group is smaller than a
// wave. The first three tiles have 8 x 8 sums per lane. Intel's compiler spills registers for the
// third, so it is missing there.
constexpr TileRow kNvidiaTiles[] = {
    {{8, 8, 2, 4, 8, 8}, {1270, 1250, 2, 2600}}, {{8, 8, 2, 2, 8, 8}, {690, 640, 4, 1900}},
    {{8, 8, 1, 2, 8, 16}, {1290, 650, 6, 2300}}, {{8, 4, 2, 2, 4, 16}, {780, 720, 4, 1700}},
    {{8, 4, 1, 2, 8, 16}, {740, 390, 8, 2000}},  {{4, 4, 1, 4, 8, 16}, {560, 450, 6, 1500}},
    {{4, 4, 1, 2, 8, 16}, {560, 240, 10, 1600}},
};
constexpr TileRow kAmdWave32Tiles[] = {
    {{8, 8, 2, 4, 8, 8}, {2340, 2280, 2, 4700}},  {{8, 8, 2, 2, 8, 8}, {1260, 1170, 4, 3000}},
    {{8, 8, 1, 2, 8, 16}, {1520, 1210, 3, 2300}}, {{8, 4, 2, 2, 4, 16}, {1440, 1300, 3, 2400}},
    {{8, 4, 1, 2, 8, 16}, {1000, 690, 5, 1900}},  {{4, 4, 1, 4, 8, 16}, {940, 780, 5, 2000}},
    {{4, 4, 1, 2, 8, 16}, {820, 410, 7, 1600}},
};
constexpr TileRow kAmdWave64Tiles[] = {
    {{8, 8, 2, 4, 8, 8}, {1640, 1450, 3, 5000}},  {{8, 8, 2, 2, 8, 8}, {1530, 770, 5, 5200}},
    {{8, 8, 1, 2, 8, 16}, {2990, 1230, 3, 6300}}, {{8, 4, 2, 2, 4, 16}, {1860, 1050, 3, 4000}},
    {{8, 4, 1, 2, 8, 16}, {1830, 810, 5, 4700}},  {{4, 4, 1, 4, 8, 16}, {1240, 710, 5, 3400}},
    {{4, 4, 1, 2, 8, 16}, {1170, 410, 7, 3500}},
};
constexpr TileRow kIntelTiles[] = {
    {{8, 8, 2, 4, 8, 8}, {1580, 1500, 4, 3200}},
    {{8, 8, 2, 2, 8, 8}, {1040, 830, 8, 2300}},
    {{8, 4, 2, 2, 4, 16}, {1250, 1060, 8, 2000}},
    {{8, 4, 1, 2, 8, 16}, {890, 610, 16, 2300}},
    {{4, 4, 1, 4, 8, 16}, {890, 700, 8, 1700}},
    {{4, 4, 1, 2, 8, 16}, {790, 390, 16, 1900}},
    {{16, 4, 8, 1, 1, 8, 8}, {640, 275, 16, 2000}},
    {{16, 4, 4, 1, 1, 8, 8}, {640, 138, 32, 2000}},
    {{16, 4, 8, 1, 1, 16, 16}, {640, 550, 8, 2000}},
    {{16, 4, 4, 1, 1, 16, 16}, {640, 275, 16, 2000}},
};
// Tiles for tensor cores with 1024 operations a clock in 16 bits (sm_86), by the same model.
constexpr TileRow kMatrixTiles[] = {
    {{8, 8, 2, 4, 8, 16, 0, 2}, {560, 520, 2, 2600}},
    {{8, 8, 2, 2, 8, 16, 0, 2}, {560, 280, 4, 1900}},
    {{8, 8, 1, 2, 8, 16, 0, 2}, {560, 160, 8, 2300}},
    {{8, 8, 1, 2, 8, 32, 0, 2}, {610, 330, 5, 2300}},
    {{4, 4, 1, 4, 8, 32, 0, 2}, {590, 230, 7, 1500}},
    {{4, 4, 1, 2, 8, 32, 0, 2}, {590, 150, 10, 1600}},
};
// Of bytes, tensor cores multiply twice as many: half the words along K, with the same instructions
// and the same number of bytes.
constexpr auto kMatrixByteTiles = [] {
  std::array<TileRow, std::size(kMatrixTiles)> rows = {};
  std::ranges::copy(kMatrixTiles, rows.begin());
  for (TileRow& row : rows) {
    row.tile.slice /= 2;
    row.tile.matrix = 4;
  }
  return rows;
}();
// NVIDIA's tiles, one tile for devices whose groups have at most 32 work-items, and sub-groups,
// which other vendors may have.
constexpr TileRow kAnyTiles[] = {
    kNvidiaTiles[0], kNvidiaTiles[1], kNvidiaTiles[2], kNvidiaTiles[3],
    kNvidiaTiles[4], kNvidiaTiles[5], kNvidiaTiles[6], {{8, 4, 1, 1, 4, 16}, {750, 280, 4, 2000}},
    kIntelTiles[6],  kIntelTiles[8],
};
// Products of integers have no kernel that works from registers alone. Unmeasured.
constexpr TileRow kPhoneByteTiles[] = {kAnyTiles[6], kAnyTiles[7]};

// As many rows as leave registers for two vectors of B and one of A.
constexpr PanelShape kPanels[] = {{16, 8}, {8, 6}, {4, 4}};

constexpr Tuning kGpu = {
    // Few sizes of groups, because some drivers compile a kernel anew for each. The two sizes:
    // unmeasured.
    .flat_group = 256,
    .loop_group = 64,
    .short_row = 32,  // less would leave most of a group idle
    .lines = false,
    .line_items = 1024,
    // 8 rows of 32 work-items are one group of flat_group. Sides of tiles and blocks: unmeasured.
    .transpose_tile = 32,
    .transpose_block = 16,
    .transpose_rows = 8,
    .transpose_least = 8,  // of 32: a shorter axis leaves more than three quarters of a tile empty
    // A lane of a GPU moves one pixel, beside its neighbours' pixels.
    .transpose_few = 4,
    .transpose_few_block = 1,
    .panels = false,
    .tiles = kAnyTiles,
    .byte_tiles = kAnyTiles,
    .matrix_tiles = kMatrixTiles,
    .matrix_byte_tiles = kMatrixByteTiles,
    .registers_x = 0,
    .registers_y = 0,
    .register_quads = 2,
    .register_conv_quads = 2,
    .tile_unroll = 4,         // more let some compilers run out of registers
    .tile_least_columns = 8,  // with fewer, most of a tile is past the edge; unmeasured
    // Shorter parts would spend more time outside their loop than in it.
    .part_least = 64,
    .most_parts = 16,
    // 1.5 us at 1.8 GHz, and the middle of 16 to 30 bytes a clock. Unmeasured.
    .launch_clocks = 2700,
    .cache_bytes = 24,
    // From data sheets: a GeForce 3060 and an A100. NVIDIA's large GPUs have more cache for each
    // core.
    .memory_bytes = 6,
    .shared_cache = 100 << 10,
    .many_cores = 128,
    .shared_cache_of_many = 380 << 10,
    // Keeps enough reads under way for a core's share of the memory; eight rows take 60 to 100
    // registers.
    .column_group = 256,
    .column_rows = 8,
    .column_most_rows = 8,
    .transform_group =
        128,             // half of what smaller devices allow, since each has 36 numbers at once
    .panel_flops = 2e5,  // a work-item should be worth some microseconds of one core
    .panel_items_per_unit = 8,  // few items would leave cores idle at the end
    // Neighbouring pixels share their windows, but more pixels need more registers. Unmeasured.
    .depthwise_pixels = 4,
    .depthwise_rows = false,  // a GPU wants many small pieces
    // Groups along channels, smaller where few vectors would leave them half empty. Unmeasured.
    .depthwise_many = 32,
    .depthwise_group = 64,
    .depthwise_small_group = 16,
    // A few elements per work-item before partial results are joined. Unmeasured.
    .row_elements = 4,
    .held_elements = 16,  // this leaves half of 64 registers
    .column_elements = 16,
    .columns_per_group = 16,  // 64 bytes side by side; the rest of a group shortens each sum
    // The reads of a work-item partly wait for each other: 32 of them take longer than another
    // launch. Two groups of 256 work-items are half of what a core holds.
    .item_elements = 32,
    .reduce_groups_per_core = 2,
    // The kernel's work is the elements times the chunk, which holds at least 2 k. Unmeasured.
    .topk_chunk = 4096,
    .topk_most = 8192,
    // Enough work-items for the device; each of them reads all indices. Unmeasured.
    .scatter_items = 16384,
    .scatter_items_per_unit = 0,
    .scatter_classes = 1024,
    .scatter_grouped = 0,
};

constexpr Tuning kCpu = [] {
  Tuning t = kGpu;
  t.panels = true;  // one work-item per group, wide private vectors, packed operands
  t.lines = true;
  t.transpose_few = 7;           // below transpose_least
  t.transpose_few_block = 4096;  // some microseconds of a core, 16 KB of each of the few
  // On a CPU a second launch costs some ten microseconds of a core, and a few groups per core are
  // enough.
  t.item_elements = 32768;
  t.depthwise_rows = true;  // a core takes a whole row
  t.depthwise_group = t.depthwise_small_group = 1;
  // A few work-items per core, in groups of one unless rows are long. Unmeasured.
  t.scatter_items = 0;
  t.scatter_items_per_unit = 4;
  t.scatter_grouped = 64;
  return t;
}();

// The columns of GPUs differ only in their tiles.
constexpr Tuning WithTiles(std::span<const TileRow> tiles, int64_t unroll) {
  Tuning t = kGpu;
  t.tiles = t.byte_tiles = tiles;
  t.tile_unroll = unroll;
  return t;
}
// Unrolling a whole slice lets NVIDIA's compiler read ahead, and reduces what Intel's compiler
// spills to a third.
constexpr Tuning kNvidia = WithTiles(kNvidiaTiles, 16);
// From data sheets. A core is what the driver counts as a compute unit: on RDNA, a pair of them.
constexpr Tuning WithMemory(Tuning t, double bytes, int64_t shared_cache) {
  t.memory_bytes = bytes;
  t.shared_cache = t.shared_cache_of_many = shared_cache;
  return t;
}
constexpr Tuning kAmdWave32 = WithMemory(WithTiles(kAmdWave32Tiles, 4), 7, 2 << 20);
constexpr Tuning kAmdWave64 = WithMemory(WithTiles(kAmdWave64Tiles, 4), 8, 80 << 10);
constexpr Tuning kIntel = WithMemory(WithTiles(kIntelTiles, 16), 7, 512 << 10);
// On Mali, local memory is ordinary memory. The registers of a lane suffice for 32 sums on both
// vendors' GPUs. Groups are one wave: 16 lanes on Mali, 64 on Adreno. Unmeasured.
constexpr Tuning WithRegisters(int64_t x, int64_t y) {
  Tuning t = kGpu;
  t.tiles = {};
  t.byte_tiles = kPhoneByteTiles;
  t.registers_x = x;
  t.registers_y = y;
  t.column_group = 64;
  t.column_rows = 4;  // this leaves them under 64 registers
  return t;
}
constexpr Tuning kMali = [] {
  Tuning t = WithRegisters(4, 4);
  // A lane of Mali has at most 64 registers, and 32 when the most waves are to be resident. The
  // addresses of four pixels leave room for 16 sums.
  t.register_quads = t.register_conv_quads = 1;
  return t;
}();
constexpr Tuning kAdreno = WithRegisters(4, 16);

}  // namespace

const Tuning& TuningOf(const Capabilities& caps) {
  if (caps.shape == KernelShape::kCpu) return kCpu;
  switch (caps.family) {
    case GpuFamily::kNvidia:
      return kNvidia;
    case GpuFamily::kAmdWave32:
      return kAmdWave32;
    case GpuFamily::kAmdWave64:
      return kAmdWave64;
    case GpuFamily::kIntel:
      return kIntel;
    case GpuFamily::kMali:
      return kMali;
    case GpuFamily::kAdreno:
      return kAdreno;
    default:
      return kGpu;
  }
}

const PanelShape& PanelOf(const Capabilities& caps) {
  return kPanels[caps.vector_width >= 16 ? 0 : caps.vector_width >= 8 ? 1 : 2];
}

}  // namespace oncilla::opencl
