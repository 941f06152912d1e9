// Blocks of products and packing of panels, once per instruction set.
//
// A block is the part of a product that one task computes. Its loops, from the outside in: passes
// over parts of K, tiles of rows, panels of columns (or panels outside tiles,
// Block::panels_outside), and in RunTile the steps of K with all sums in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_targets.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/gemm/gemm_targets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/gemm/gemm_tile.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The longest part of K that one pass takes: the rows of A of a tile then stay in the first-level
// cache while the panels go by.
constexpr int64_t kDepthBlock = 512;
// How far ahead B is prefetched, in steps of K.
constexpr int64_t kPrefetchSteps = 48;

// Copies rows of `count` floats.
HWY_INLINE void CopyRows(const float* from, int64_t from_step, float* to, int64_t to_step, int rows,
                         int64_t count) {
  for (int i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < count; j += kLanes) {
      StoreSome(LoadSome(from + i * from_step + j, count - j), to + i * to_step + j, count - j);
    }
  }
}
void ActivateRows(Activation activation, float* c, int64_t step, int rows, int64_t count) {
  WithActivation(Floats(), activation, [&](const auto& function) HWY_ATTR {
    for (int i = 0; i < rows; ++i) {
      float* row = c + i * step;
      int64_t j = 0;
      for (; j + kLanes <= count; j += kLanes) StoreAll(function(LoadAll(row + j)), row + j);
      if (j < count) StoreSome(function(LoadSome(row + j, count - j)), row + j, count - j);
    }
  });
}

// Computes a tile whose last vector of columns is not full. It works on a small copy of C, because
// a tile reads and writes whole vectors.
template <class B>
HWY_NOINLINE void RunRaggedTile(int rows, int64_t columns, const TileArgs<B>& tile) {
  HWY_ALIGN float c[kTileRows * kTileColumns], bias[kTileColumns];
  HWY_ALIGN float residual[kTileRows * kTileColumns];
  columns = std::min<int64_t>(columns, kTileColumns);  // as is; compilers warn without it
  TileArgs<B> inside = tile;
  inside.c = c;
  inside.c_step = kTileColumns;
  if (tile.add_to_c || tile.add_last) CopyRows(tile.c, tile.c_step, c, kTileColumns, rows, columns);
  if (tile.bias != nullptr) {
    CopyRows(tile.bias, 0, bias, 0, 1, columns);
    inside.bias = bias;
  }
  if (tile.residual != nullptr) {
    CopyRows(tile.residual, tile.residual_step, residual, kTileColumns, rows, columns);
    inside.residual = residual;
    inside.residual_step = kTileColumns;
  }
  RunTile(rows, static_cast<int>((columns + kLanes - 1) / kLanes), inside);
  CopyRows(c, kTileColumns, tile.c, tile.c_step, rows, columns);
}

// Computes a block in which parts of K are summed separately and then added, which keeps the
// rounding errors of long sums small.
void RunPartialSums(const Product<float>& p, const Block& block) {
  const int64_t tiles_per_line = TilesPerLine(p, kTileRows), depth = p.depth();
  const int64_t passes = (p.run + p.partial_sum - 1) / p.partial_sum;
  TileArgs<float> t = {};
  t.row_step = p.row_step;
  t.run_step = p.run_step;
  t.taps = p.taps;
  t.tap_count = 1;
  t.prefetch = kPrefetchSteps * kTileColumns;
  t.c_step = p.c_step;
  for (int64_t tile = block.first_tile; tile < block.last_tile; ++tile) {
    const TilePlace place = PlaceOf(p, tiles_per_line, tile);
    for (int64_t panel = block.first_panel; panel < block.last_panel; ++panel) {
      const int64_t column = panel * kTileColumns;
      const int64_t columns = std::min<int64_t>(kTileColumns, p.columns - column);
      t.c = p.c + place.c + column;
      for (int64_t pass = 0; pass < passes; ++pass) {
        const int64_t k = p.run * pass / passes;
        t.run = p.run * (pass + 1) / passes - k;
        t.a = p.a + place.a + k * p.run_step;
        t.b = p.b + (panel * depth + k) * kTileColumns;
        t.add_last = pass > 0;
        if (columns % kLanes == 0) {
          RunTile(place.rows, static_cast<int>(columns / kLanes), t);
        } else {
          RunRaggedTile(place.rows, columns, t);
        }
      }
    }
  }
}

// Part of the depth of a tile's rows, times the gate. The rows are an odd number of cache lines
// apart, so that they do not map to the same sets of the first-level cache.
struct GatedRows {
  static constexpr int64_t kStep = kDepthBlock + 16;
  HWY_ALIGN float a[kTileRows * kStep];

  void Fill(const float* from, int64_t row_step, int64_t run_step, int rows, const float* gate,
            int64_t count) {
    for (int i = 0; i < rows; ++i) {
      const float* row = from + i * row_step;
      float* to = a + i * kStep;
      int64_t j = 0;
      if (run_step == 1) {
        for (; j + kLanes <= count; j += kLanes) {
          StoreAll(hn::Mul(LoadAll(row + j), LoadAll(gate + j)), to + j);
        }
      }
      for (; j < count; ++j) to[j] = row[j * run_step] * gate[j];
    }
  }
};
struct NoGatedRows {
  static constexpr int64_t kStep = 0;
  float a[1];
  void Fill(const float*, int64_t, int64_t, int, const float*, int64_t) {}
};

// The arguments that all tiles of a product share. With kGated the tiles read GatedRows.
template <class B, bool kGated>
TileArgs<B> ArgsOf(const Product<float, B>& p) {
  static constexpr int64_t kOneTap = 0;
  TileArgs<B> t = {};
  t.row_step = kGated ? GatedRows::kStep : p.row_step;
  t.run_step = kGated ? 1 : p.run_step;
  t.taps = kGated ? &kOneTap : p.taps;
  t.tap_count = p.tap_count;
  t.c_step = t.residual_step = p.c_step;
  t.prefetch = kPrefetchSteps * kTileColumns;
  return t;
}

// Calls fn(tile, panel) for all of a block.
template <class F>
HWY_INLINE void ForTiles(const Block& block, F&& fn) {
  const int64_t tiles = block.last_tile - block.first_tile;
  const int64_t panels = block.last_panel - block.first_panel;
  for (int64_t i = 0; i < tiles * panels; ++i) {
    const int64_t tile = block.panels_outside ? i % tiles : i / panels;
    const int64_t panel = block.panels_outside ? i / tiles : i % panels;
    fn(block.first_tile + tile, block.first_panel + panel);
  }
}

// Calls fn(tile, panel, taps) for the runs of taps that each tile of a block sees.
template <class F>
HWY_INLINE void ForSeenTaps(const ProductSizes& p, const Block& block, F&& fn) {
  const int64_t tiles_per_line = TilesPerLine(p, kTileRows);
  std::vector<TapRun> runs;
  int64_t found_tile = -1;
  ForTiles(block, [&](int64_t tile, int64_t panel) HWY_ATTR {
    if (found_tile != tile) FindSeenTaps(p, tiles_per_line, found_tile = tile, runs);
    for (const TapRun& taps : runs) fn(tile, panel, taps);
  });
}

// Computes a block: for each part of K, tile of rows and panel of columns it sets the arguments of
// the tile and calls the function for the tile's size. The first part starts the sums with bias and
// residual, later ones add to C, and only the last one applies the activation.
template <class B, bool kGated>
void RunBlockOf(const Product<float, B>& p, const Block& block) {
  if constexpr (std::is_same_v<B, float>) {
    if (p.partial_sum > 0) return RunPartialSums(p, block);
  }
  const Activation activation = p.epilogue.activation;
  const float bounds[2] = {0, activation == Activation::kRelu6 ? 6 : HUGE_VALF};
  const bool bounded = activation == Activation::kRelu || activation == Activation::kRelu6;
  const bool curved = activation != Activation::kNone && !bounded;
  const int64_t tiles_per_line = TilesPerLine(p, kTileRows), depth = p.depth();
  const int64_t passes =
      p.tap_count == 1 ? std::max<int64_t>(1, (p.run + kDepthBlock - 1) / kDepthBlock) : 1;

  TileArgs<B> t = ArgsOf<B, kGated>(p);
  int64_t k = 0, gated_tile = -1, placed_tile = -1;
  bool first = true, last = true;
  std::conditional_t<kGated, GatedRows, NoGatedRows> gated;
  TilePlace place = {};
  auto run = [&](int64_t tile, int64_t panel) HWY_ATTR {
    // Its divisions take as much as a tenth of the time of a tile with few steps, so the result is
    // kept.
    if (placed_tile != tile) place = PlaceOf(p, tiles_per_line, placed_tile = tile);
    const int rows = place.rows;
    t.a = p.a + place.a + (p.tap_count == 1 ? k * p.run_step : 0);
    if constexpr (kGated) {
      if (gated_tile != tile) {
        gated.Fill(t.a + p.taps[0], p.row_step, p.run_step, rows, p.gate + k, t.run);
      }
      gated_tile = tile;
      t.a = gated.a;
    }
    const int64_t column = panel * kTileColumns, at = place.c + column;
    t.c = p.c + at;
    t.b = p.b + (panel * depth + k) * kTileColumns;
    t.add_to_c = !first;
    t.bias = p.epilogue.bias != nullptr ? p.epilogue.bias + column : nullptr;
    t.residual = p.epilogue.residual != nullptr ? p.epilogue.residual + at : nullptr;
    t.bounds = bounded && last ? bounds : nullptr;
    int64_t columns = std::min<int64_t>(kTileColumns, p.columns - column);
    int panels = 1;
    if (rows <= 3 && p.tap_count == 1 && !block.panels_outside &&
        panel + PanelsAtOnce(rows) <= block.last_panel &&
        column + PanelsAtOnce(rows) * kTileColumns <= p.columns) {
      panels = PanelsAtOnce(rows);
      columns = panels * kTileColumns;
      const auto few = rows == 1 ? &FewRows<B, 1> : rows == 2 ? &FewRows<B, 2> : &FewRows<B, 3>;
      few(t, depth * kTileColumns);
    } else if (columns % kLanes == 0) {
      RunTile(rows, static_cast<int>(columns / kLanes), t);
    } else {
      RunRaggedTile(rows, columns, t);
    }
    if (curved && last) ActivateRows(activation, t.c, p.c_step, rows, columns);
    return panels;
  };
  if (p.seen != nullptr && !kGated) {
    t.run = p.run;
    ForSeenTaps(p, block, [&](int64_t tile, int64_t panel, TapRun taps) HWY_ATTR {
      k = taps.first * p.run;
      t.taps = p.taps + taps.first;
      t.tap_count = taps.count;
      first = taps.begins, last = taps.ends;
      run(tile, panel);
    });
    return;
  }
  for (int64_t pass = 0; pass < passes; ++pass) {
    k = p.run * pass / passes;
    t.run = p.run * (pass + 1) / passes - k;
    first = pass == 0;
    last = pass == passes - 1;
    gated_tile = -1;  // another part of K: gated rows are filled again
    if (block.panels_outside) {
      ForTiles(block, run);
    } else {
      for (int64_t tile = block.first_tile; tile < block.last_tile; ++tile) {
        for (int64_t panel = block.first_panel; panel < block.last_panel;)
          panel += run(tile, panel);
      }
    }
  }
}

template <class B>
void RunBlock(const Product<float, B>& p, const Block& block) {
  if constexpr (std::is_same_v<B, float>) {
    if (p.gate != nullptr) return RunBlockOf<B, true>(p, block);
  }
  RunBlockOf<B, false>(p, block);
}

// Tiles of a product stored in 16 bits, over the whole depth. A is widened into `a_` part by part,
// unless it is there already; sums stay in a tile of float until they are finished.
template <class T>
class NarrowTiles {
 public:
  explicit NarrowTiles(const Product<T>& p)
      : p_(p),
        depth_(p.depth()),
        passes_(std::max<int64_t>(1, (depth_ + kDepthBlock - 1) / kDepthBlock)),
        bounded_(p.epilogue.activation == Activation::kRelu ||
                 p.epilogue.activation == Activation::kRelu6) {
    static constexpr int64_t kOneTap = 0;
    t_.add_last = false;
    t_.a = a_;
    t_.run_step = 1;
    t_.taps = &kOneTap;
    t_.tap_count = 1;
    t_.prefetch = kPrefetchSteps * kTileColumns;
    t_.c = c_;
    t_.c_step = kTileColumns;
    t_.residual = nullptr;
    t_.residual_step = 0;
    t_.bounds = nullptr;
  }

  void Run(int64_t tile, int64_t panel) {
    const TilePlace place = PlaceOf(p_, TilesPerLine(p_, kTileRows), tile);
    const int rows = place.rows;
    const T* a = p_.a + place.a;
    const int64_t column = panel * kTileColumns;
    const int64_t columns = std::min<int64_t>(kTileColumns, p_.columns - column);
    const int vectors = static_cast<int>((columns + kLanes - 1) / kLanes);
    if (p_.epilogue.bias != nullptr) {
      for (int64_t j = 0; j < columns; j += kLanes) {
        StoreAll(LoadSome(p_.epilogue.bias + column + j, columns - j), bias_ + j);
      }
    }
    t_.bias = p_.epilogue.bias != nullptr ? bias_ : nullptr;
    for (int64_t pass = 0; pass < passes_; ++pass) {
      const int64_t k = depth_ * pass / passes_, end = depth_ * (pass + 1) / passes_;
      t_.run = end - k;
      t_.row_step = t_.run;
      if (passes_ > 1 || tile != widened_) Widen(a, rows, k, end);
      t_.b = p_.b + (panel * depth_ + k) * kTileColumns;
      t_.add_to_c = pass > 0;
      RunTile(rows, vectors, t_);
    }
    widened_ = tile;
    Finish(place.c + column, rows, columns);
  }

 private:
  // Widens elements [k, end) of the depth of `rows` rows.
  void Widen(const T* a, int rows, int64_t k, int64_t end) {
    float* to = a_;
    for (int i = 0; i < rows; ++i) {
      const T* row = a + i * p_.row_step;
      for (int64_t at = k; at < end;) {
        const int64_t tap = at / p_.run, first = at % p_.run;
        const int64_t count = std::min(end - at, p_.run - first);
        const T* from = row + p_.taps[tap] + first * p_.run_step;
        if (p_.run_step == 1 && count >= kLanes) {
          // The last vector overlaps the one before it, which avoids a partial load.
          for (int64_t j = 0; j + kLanes < count; j += kLanes) StoreAll(LoadAll(from + j), to + j);
          StoreAll(LoadAll(from + count - kLanes), to + count - kLanes);
        } else if (p_.run_step == 1) {
          StoreSome(LoadSome(from, count), to, count);
        } else {
          for (int64_t j = 0; j < count; ++j) to[j] = static_cast<float>(from[j * p_.run_step]);
        }
        to += count;
        at += count;
      }
    }
  }

  void Finish(int64_t at, int rows, int64_t columns) {
    constexpr Floats d;
    const Activation activation = p_.epilogue.activation;
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const Vector low = hn::Set(d, bounded_ ? 0 : -kInf);
    const Vector high = hn::Set(d, activation == Activation::kRelu6 ? 6 : kInf);
    const bool curved = activation != Activation::kNone && !bounded_;
    const T* residual = p_.epilogue.residual;
    if (curved && residual == nullptr) {
      ActivateRows(activation, c_, kTileColumns, rows, columns);
    } else if (curved) {
      AddRows(residual + at, rows, columns);
      residual = nullptr;
      ActivateRows(activation, c_, kTileColumns, rows, columns);
    }
    for (int i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; j += kLanes) {
        const int64_t to = at + i * p_.c_step + j;
        Vector v = hn::LoadU(d, c_ + i * kTileColumns + j);
        if (residual != nullptr) v = hn::Add(v, LoadSome(residual + to, columns - j));
        v = Bounded(low, high, v);
        StoreSome(v, p_.c + to, columns - j);
      }
    }
  }

  void AddRows(const T* residual, int rows, int64_t columns) {
    constexpr Floats d;
    for (int i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; j += kLanes) {
        float* c = c_ + i * kTileColumns + j;
        StoreAll(hn::Add(hn::LoadU(d, c), LoadSome(residual + i * p_.c_step + j, columns - j)), c);
      }
    }
  }

  const Product<T>& p_;
  const int64_t depth_, passes_;
  const bool bounded_;
  int64_t widened_ = -1;  // the tile whose rows a_ holds in full, or -1
  TileArgs<T> t_;
  HWY_ALIGN float a_[kTileRows * (kDepthBlock + 1)];
  HWY_ALIGN float c_[kTileRows * kTileColumns];
  HWY_ALIGN float bias_[kTileColumns];
};

template <class T>
void RunNarrowBlock(const Product<T>& p, const Block& block) {
  NarrowTiles<T> tiles(p);
  if (block.panels_outside) {
    for (int64_t panel = block.first_panel; panel < block.last_panel; ++panel) {
      for (int64_t tile = block.first_tile; tile < block.last_tile; ++tile) tiles.Run(tile, panel);
    }
  } else {
    for (int64_t tile = block.first_tile; tile < block.last_tile; ++tile) {
      for (int64_t panel = block.first_panel; panel < block.last_panel; ++panel) {
        tiles.Run(tile, panel);
      }
    }
  }
}

// Packs one panel of 16-bit elements, of which `columns` columns exist; the others become zeros.
template <class T>
void PackNarrowPanel(const T* b, int64_t row_step, int64_t column_step, int64_t depth,
                     int64_t columns, T* to) {
  columns = std::min<int64_t>(columns, kTileColumns);
  for (int64_t k = 0; k < depth; ++k) {
    T* row = to + k * kTileColumns;
    for (int64_t n = 0; n < columns; ++n) row[n] = b[k * row_step + n * column_step];
    std::fill(row + columns, row + kTileColumns, T());
  }
}

// Transposes four rows of four: to[i * step + j] = from[j * from_step + i].
HWY_INLINE void Transpose4(const float* from, int64_t from_step, float* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) to[i * kTileColumns + j] = from[j * from_step + i];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_step);
  const auto c = hn::LoadU(d, from + 2 * from_step), e = hn::LoadU(d, from + 3 * from_step);
  const auto ab0 = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto ab2 = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto ce0 = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
  const auto ce2 = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab0, ce0)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab0, ce0)), d, to + kTileColumns);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab2, ce2)), d, to + 2 * kTileColumns);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab2, ce2)), d, to + 3 * kTileColumns);
#endif
}

// Packs one panel, of which `columns` columns exist; the others become zeros.
void PackPanel(const float* b, int64_t row_step, int64_t column_step, int64_t depth,
               int64_t columns, float* to) {
  columns = std::min<int64_t>(columns, kTileColumns);
  if (columns < kTileColumns) std::fill_n(to, depth * kTileColumns, 0.0f);
  if (column_step == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      CopyRows(b + k * row_step, 0, to + k * kTileColumns, 0, 1, columns);
    }
    return;
  }
  int64_t n = 0;
  if (row_step == 1) {
    for (; n + 4 <= columns; n += 4) {
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        Transpose4(b + n * column_step + k, column_step, to + k * kTileColumns + n);
      }
      for (; k < depth; ++k) {
        for (int64_t j = n; j < n + 4; ++j) to[k * kTileColumns + j] = b[j * column_step + k];
      }
    }
  }
  for (; n < columns; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      to[k * kTileColumns + n] = b[k * row_step + n * column_step];
    }
  }
}

template <class T>
float DotProduct(const T* a, const T* b, int64_t count) {
  constexpr Floats d;
  Vector sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    ONCILLA_UNROLL for (int v = 0; v < 4; ++v) {
      const int64_t at = i + v * kLanes;
      sum[v] = hn::MulAdd(LoadAll(a + at), LoadAll(b + at), sum[v]);
    }
  }
  for (; i < count; i += kLanes) {
    sum[0] = hn::MulAdd(LoadSome(a + i, count - i), LoadSome(b + i, count - i), sum[0]);
  }
  const Vector all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  return hn::GetLane(hn::SumOfLanes(d, all));
}

const GemmTarget* GetTarget() {
  static const std::string name =
      StrCat(kTileRows, 'x', kTileColumns, ' ', hwy::TargetName(HWY_TARGET));
  static const GemmTarget target{
      name.c_str(),
      kTileRows,
      kTileColumns,
      {&RunBlock<float>, &RunBlock<float>, &PackPanel, &DotProduct<float>},
      {&RunNarrowBlock<Half>, &RunBlock<Half>, &PackNarrowPanel<Half>, &DotProduct<Half>},
      {&RunNarrowBlock<BFloat16>, &RunBlock<BFloat16>, &PackNarrowPanel<BFloat16>,
       &DotProduct<BFloat16>},
      &ActivateRows};
  return &target;
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(GetTarget);

const GemmTarget& Target() {
  static const GemmTarget& target = *HWY_DYNAMIC_DISPATCH(GetTarget)();
  return target;
}

}  // namespace oncilla::cpu
#endif
