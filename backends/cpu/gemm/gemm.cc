// Divides products into tasks.
//
// The split depends on sizes alone, never on the number of threads, so that sums are reproducible
// bit for bit. It balances three aims: tasks that are large enough to pay for their start, blocks
// of B that stay in the second-level cache, and, if there are few rows, weights that only one core
// reads.
#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm_targets.h"
#include "backends/cpu/gemm/pairs.h"
#include "backends/cpu/kernel.h"

namespace oncilla::cpu {
namespace {

// A task should be worth some microseconds; more tasks than this are never needed.
constexpr double kFlopsPerTask = 2e6;
constexpr int64_t kMaxTasks = 256;
// Very large products are cut into more tasks: no task should keep a cancelled run waiting.
constexpr double kMostFlopsPerTask = 1e9;
// Elements of B that one task reads repeatedly: they have to stay in the second-level cache.
constexpr int64_t kBlockFloats = 512 * 1024 / 4;
constexpr int64_t kDepthBlock = 512;
// The least that a task reads of B, if it reads each element once.
constexpr int64_t kReadFloats = 512 * 1024 / 4;
// Elements that a thread packs in one chunk.
constexpr int64_t kPackedElements = 1 << 16;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t PanelColumns() { return Target().tile_columns; }
const char* TileName() { return Target().name; }

int64_t PackedElements(int64_t depth, int64_t columns) {
  return CeilDiv(columns, PanelColumns()) * PanelColumns() * depth;
}

template <class T, class Packed>
void PackPanels(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                int64_t first, int64_t last, Packed* to) {
  const int64_t width = PanelColumns(), panel_elements = PackedCount<Packed>(depth, width);
  for (int64_t panel = first; panel < last; ++panel) {
    const T* from = b + panel * width * column_step;
    Packed* out = to + panel * panel_elements;
    if constexpr (std::is_same_v<Packed, BFloat16Pair>) {
      PackPairPanel(from, row_step, column_step, depth, columns - panel * width, out);
    } else {
      FunctionsFor<T>(Target()).pack(from, row_step, column_step, depth, columns - panel * width,
                                     out);
    }
  }
}

template <class T, class Packed>
void Pack(const Threads& threads, const T* b, int64_t row_step, int64_t column_step, int64_t depth,
          int64_t columns, Packed* to) {
  const int64_t width = PanelColumns();
  const int64_t grain =
      std::max<int64_t>(1, kPackedElements / (width * std::max<int64_t>(1, depth)));
  ParallelFor(threads, CeilDiv(columns, width), grain, [&](int64_t first, int64_t last) {
    PackPanels(b, row_step, column_step, depth, columns, first, last, to);
  });
}

Split SplitOf(const ProductSizes& p, int64_t others) {
  const int64_t width = Target().tile_columns;
  const int64_t panels = CeilDiv(p.columns, width);
  const int64_t tiles = p.lines() * TilesPerLine(p, Target().tile_rows);
  const double flops = 2.0 * static_cast<double>(p.rows()) * static_cast<double>(p.columns) *
                       static_cast<double>(p.depth());
  const auto most = static_cast<double>(std::max<int64_t>(1, kMaxTasks / others));
  auto wanted = static_cast<int64_t>(std::clamp(flops / kFlopsPerTask, 1.0, most));
  wanted = std::max(wanted, static_cast<int64_t>(flops / kMostFlopsPerTask));
  if (others == 1 && flops > 1e6) wanted = std::max<int64_t>(wanted, 2);
  // An odd number leaves one worker of two, or of four, to wait for the last task.
  const int64_t even = wanted > 8 ? 4 : 2;
  if (wanted > 1) wanted = CeilDiv(wanted, even) * even;

  Split split;
  const int64_t b_floats = p.depth() * p.columns;
  // With few rows, nearly all the work is reading B.
  if (p.rows() <= 3 && others == 1) {
    wanted = std::max(wanted, std::min<int64_t>(kMaxTasks, b_floats / kReadFloats));
  }
  if (p.tap_count == 1) {
    const int64_t block = std::clamp<int64_t>(
        kBlockFloats / (std::clamp<int64_t>(p.run, 1, kDepthBlock) * width), 1, panels);
    split.panel_tasks = CeilDiv(panels, block);
    split.row_tasks = CeilDiv(wanted, split.panel_tasks);
    if (split.row_tasks > tiles) {
      split.row_tasks = tiles;
      split.panel_tasks = std::min(panels, std::max(split.panel_tasks, CeilDiv(wanted, tiles)));
    }
    // Few rows and many weights: let each weight be read by one core only.
    if (p.rows() <= 256 && panels >= 8 && b_floats > 384 * 1024 / 4) {
      split.row_tasks = 1;
      split.panel_tasks = std::min(panels, std::max(split.panel_tasks, wanted));
    }
  } else {
    split.panel_tasks = b_floats > 640 * 1024 / 4 ? std::min(panels, wanted) : 1;
    split.row_tasks = std::min(tiles, CeilDiv(wanted, split.panel_tasks));
  }
  return split;
}

template <class T, class StoredB>
void RunTask(const Product<T, StoredB>& p, const Split& split, int64_t task) {
  const int64_t panels = CeilDiv(p.columns, Target().tile_columns);
  const int64_t tiles = p.lines() * TilesPerLine(p, Target().tile_rows);
  const int64_t i = task / split.row_tasks, j = task % split.row_tasks;
  Block block;
  // With few rows, a task has as many panels as tiles process at once.
  const int64_t unit = PanelsAtOnce(static_cast<int>(std::min<int64_t>(p.rows(), 4)));
  const int64_t units = CeilDiv(panels, unit);
  block.first_panel = std::min(panels, units * i / split.panel_tasks * unit);
  block.last_panel = std::min(panels, units * (i + 1) / split.panel_tasks * unit);
  block.first_tile = tiles * j / split.row_tasks;
  block.last_tile = tiles * (j + 1) / split.row_tasks;
  const int64_t floats = (block.last_panel - block.first_panel) * Target().tile_columns * p.depth();
  block.panels_outside = p.tap_count > 1 && floats > 384 * 1024 / 4;
  if constexpr (std::is_same_v<StoredB, BFloat16Pair>) {
    RunPairBlock(p, block);
  } else if constexpr (std::is_same_v<T, float>) {
    FunctionsFor<StoredB>(Target()).run_wide(p, block);
  } else {
    FunctionsFor<T>(Target()).run(p, block);
  }
}

template <class StoredB>
void RunProduct(const Threads& threads, const Product<float, StoredB>& product) {
  const Split split = SplitOf(product);
  ParallelFor(threads, split.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) RunTask(product, split, i);
  });
}

template <class T>
float Dot(const T* a, const T* b, int64_t count) {
  return FunctionsFor<T>(Target()).dot(a, b, count);
}

#define ONCILLA_FOR(T)                                                                          \
  template void PackPanels(const T*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, T*); \
  template void Pack(const Threads&, const T*, int64_t, int64_t, int64_t, int64_t, T*);         \
  template void RunProduct(const Threads&, const Product<float, T>&);                           \
  template float Dot(const T*, const T*, int64_t);
template void PackPanels(const BFloat16*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                         BFloat16Pair*);
template void Pack(const Threads&, const BFloat16*, int64_t, int64_t, int64_t, int64_t,
                   BFloat16Pair*);
template void RunTask(const Product<BFloat16, BFloat16Pair>&, const Split&, int64_t);
ONCILLA_FOR(float)
ONCILLA_FOR(Half)
ONCILLA_FOR(BFloat16)
#undef ONCILLA_FOR
template void RunTask(const Product<float>&, const Split&, int64_t);
template void RunTask(const Product<Half>&, const Split&, int64_t);
template void RunTask(const Product<BFloat16>&, const Split&, int64_t);

}  // namespace oncilla::cpu
