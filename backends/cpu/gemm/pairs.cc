// Blocks of products of bfloat16, tile by tile, over the whole depth at once.
//
// A is read in place if its rows are runs of whole pairs. Otherwise a tile's rows are copied, their
// runs one after the other and padded with a zero if the depth is odd, in parts of at most
// kMostPairs pairs. If one part is enough, all panels use the same copy.
#include "backends/cpu/gemm/pairs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/gemm/pair_tile.h"
#include "backends/cpu/instruction_set.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kRows = PairTiles::kRows, kColumns = PairTiles::kColumns;
// The largest part of K that is copied at once, in pairs.
constexpr int64_t kMostPairs = 2048;

void CopyRun(const BFloat16* from, int64_t step, int64_t count, BFloat16* to) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(BFloat16));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

class PairBlock {
 public:
  explicit PairBlock(const Product<BFloat16, BFloat16Pair>& p)
      : p_(p),
        depth_(p.depth()),
        in_place_(p.run_step == 1 && p.run % 2 == 0),
        pairs_((depth_ + 1) / 2),
        stretches_(in_place_ ? 1 : std::max<int64_t>(1, (pairs_ + kMostPairs - 1) / kMostPairs)) {
    const Activation activation = p.epilogue.activation;
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const bool bounded = activation == Activation::kRelu || activation == Activation::kRelu6;
    curved_ = activation != Activation::kNone && !bounded;
    tile_.low = bounded ? 0 : -kInf;
    tile_.high = activation == Activation::kRelu6 ? 6 : kInf;
    tile_.c_step = p.c_step;
    tile_.sums = sums_;
  }

  void Run(int64_t tile, int64_t panel) {
    const TilePlace place = PlaceOf(p_, TilesPerLine(p_, kRows), tile);
    const int rows = place.rows;
    const BFloat16* a = p_.a + place.a;
    const int64_t column = panel * kColumns;
    const int64_t at = place.c + column;
    tile_.columns = std::min<int64_t>(kColumns, p_.columns - column);
    tile_.c = p_.c + at;
    tile_.b = p_.b + panel * kColumns * pairs_;
    if (in_place_) {
      ReadInPlace(a);
      RunTile(rows, column, at, true, true);
      return;
    }
    for (int64_t i = 0; i < stretches_; ++i) {
      const int64_t first = pairs_ * i / stretches_ * 2;
      const int64_t last = std::min(depth_, pairs_ * (i + 1) / stretches_ * 2);
      if (stretches_ > 1 || tile != copied_) CopyRows(a, rows, first, last);
      RunTile(rows, column, at, i == 0, i + 1 == stretches_);
      tile_.b += tile_.pairs * kColumns;
    }
    copied_ = tile;
  }

 private:
  void ReadInPlace(const BFloat16* a) {
    tile_.a = a;
    tile_.row_step = p_.row_step;
    tile_.taps = p_.taps;
    tile_.tap_count = p_.tap_count;
    tile_.pairs = p_.run / 2;
  }

  // Copies elements [k, end) of the depth of `rows` rows.
  void CopyRows(const BFloat16* a, int rows, int64_t k, int64_t end) {
    static constexpr int64_t kOneTap = 0;
    auto* const copy = reinterpret_cast<BFloat16*>(copy_);
    tile_.a = copy;
    tile_.taps = &kOneTap;
    tile_.tap_count = 1;
    tile_.pairs = (end - k + 1) / 2;
    tile_.row_step = tile_.pairs * 2;
    for (int i = 0; i < rows; ++i) {
      const BFloat16* row = a + i * p_.row_step;
      BFloat16* to = copy + i * tile_.row_step;
      for (int64_t at = k; at < end;) {
        const int64_t tap = at / p_.run, first = at % p_.run;
        const int64_t count = std::min(end - at, p_.run - first);
        CopyRun(row + p_.taps[tap] + first * p_.run_step, p_.run_step, count, to);
        to += count;
        at += count;
      }
      if ((end - k) % 2 != 0) *to = BFloat16();
    }
  }

  // The first part of K adds the bias; the last one adds the residual and applies bounds and
  // activation.
  void RunTile(int rows, int64_t column, int64_t at, bool first, bool last) {
    const Epilogue<BFloat16>& e = p_.epilogue;
    tile_.bias = first && e.bias != nullptr ? e.bias + column : nullptr;
    tile_.residual = last && e.residual != nullptr ? e.residual + at : nullptr;
    tile_.from_sums = !first;
    tile_.to_sums = !last || curved_;
    const PairTiles& tiles = *PairTilesHere();
    tiles.run(rows, tile_);
    if (!last || !curved_) return;
    Target().activate(e.activation, sums_, kColumns, rows, tile_.columns);
    for (int i = 0; i < rows; ++i) {
      tiles.round(sums_ + i * kColumns, tile_.columns, tile_.c + i * p_.c_step);
    }
  }

  const Product<BFloat16, BFloat16Pair>& p_;
  const int64_t depth_;
  const bool in_place_;
  const int64_t pairs_;  // of a row
  const int64_t stretches_;
  bool curved_ = false;
  int64_t copied_ = -1;  // the tile whose rows copy_ holds in full, or -1
  PairTile tile_;
  alignas(64) float sums_[kRows * kColumns];
  alignas(64) uint16_t copy_[kRows * kMostPairs * 2];  // BFloat16 would be cleared
};

}  // namespace

bool MultipliesPairs() {
  static const bool here = PrefersAvx512Bf16() && PairTilesHere() != nullptr &&
                           Target().tile_rows == PairTiles::kRows &&
                           Target().tile_columns == PairTiles::kColumns;
  return here;
}
const char* PairTileName() { return "14x32 AVX512_BF16"; }

void PackPairPanel(const BFloat16* b, int64_t row_step, int64_t column_step, int64_t depth,
                   int64_t columns, BFloat16Pair* to) {
  columns = std::min<int64_t>(columns, kColumns);
  for (int64_t k = 0; k < depth; k += 2, to += kColumns) {
    const BFloat16* first = b + k * row_step;
    const bool odd = k + 1 == depth;
    const BFloat16* second = odd ? first : first + row_step;
    for (int64_t n = 0; n < columns; ++n) {
      to[n].first = first[n * column_step];
      to[n].second = odd ? BFloat16() : second[n * column_step];
    }
    std::fill(to + columns, to + kColumns, BFloat16Pair());
  }
}

void RunPairBlock(const Product<BFloat16, BFloat16Pair>& p, const Block& block) {
  PairBlock tiles(p);
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

}  // namespace oncilla::cpu
