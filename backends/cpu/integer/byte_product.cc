// Products of bytes with sums in i32, once per instruction set. Rows of x are filled and padded by
// the caller's filler, multiplied panel by panel of packed weights (MultiplyBlock), and stored with
// the terms, scales and bounds of the epilogue (StoreTile). The product is divided into pieces of
// rows and panels at the end of the file.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/byte_product.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/byte_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "backends/cpu/even_parts.h"
#include "backends/cpu/integer/byte_columns.h"
#include "backends/cpu/integer/quad_sums.h"
#include "backends/cpu/integer/requantize.inl.h"
#include "engine/tensor/shape.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // a scalar vector holds no pairs
using Pairs = hn::Repartition<int16_t, Ints>;
#endif
constexpr int kPanel = 2 * kLanes;
static_assert(kPanel <= kMostPanel);
int64_t PanelWidth() { return kPanel; }

// Widens n bytes to 16-bit integers and subtracts a zero point.
template <class T>
HWY_INLINE void WidenBytes(const T* x, int64_t n, int32_t zero, int16_t* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Pairs d;
  constexpr hn::Rebind<T, Pairs> bytes;
  const auto point = hn::Set(d, static_cast<int16_t>(zero));
  for (; i + kPanel <= n; i += kPanel) {
    hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(bytes, x + i)), point), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
}
void WidenRow(const std::byte* x, bool is_signed, int64_t n, int32_t zero, int16_t* to) {
  if (is_signed) return WidenBytes(reinterpret_cast<const int8_t*>(x), n, zero, to);
  WidenBytes(reinterpret_cast<const uint8_t*>(x), n, zero, to);
}

// Flips the top bit of n bytes, which converts between signed bytes and unsigned bytes shifted by
// 128.
void FlipRow(const std::byte* x, int64_t n, std::byte* to) {
  const hn::ScalableTag<uint8_t> d;
  const auto* from = reinterpret_cast<const uint8_t*>(x);
  auto* out = reinterpret_cast<uint8_t*>(to);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flip = hn::Set(d, uint8_t{0x80});
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), flip), d, out + i);
  for (; i < n; ++i) out[i] = static_cast<uint8_t>(from[i] ^ 0x80);
}

// The sums of kRows rows of pairs for one panel.
template <int kRows>
HWY_INLINE void PairSumsOf(const int16_t* x, int64_t step, int64_t steps, const int16_t* w,
                           int32_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kPanel; ++c) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < 2 * steps; ++i) {
        const int32_t weight = w[(i / 2 * kPanel + c) * 2 + i % 2];
        sum += static_cast<uint32_t>(x[r * step + i] * weight);
      }
      out[r * kPanel + c] = static_cast<int32_t>(sum);
    }
  }
#else
  constexpr Ints d;
  constexpr Pairs pairs;
  IntVector sum[kRows][2], rest[kRows][2];
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    ONCILLA_UNROLL for (int v = 0; v < 2; ++v) sum[r][v] = rest[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < steps; ++p, w += kPanel * 2) {
    const auto w0 = hn::LoadU(pairs, w), w1 = hn::LoadU(pairs, w + kPanel);
    ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
      int32_t both;
      std::memcpy(&both, x + r * step + p * 2, sizeof(both));
      const auto in = hn::BitCast(pairs, hn::Set(d, both));
      sum[r][0] = hn::ReorderWidenMulAccumulate(d, in, w0, sum[r][0], rest[r][0]);
      sum[r][1] = hn::ReorderWidenMulAccumulate(d, in, w1, sum[r][1], rest[r][1]);
    }
  }
  ONCILLA_UNROLL for (int r = 0; r < kRows; ++r) {
    ONCILLA_UNROLL for (int v = 0; v < 2; ++v) {
      hn::StoreU(hn::RearrangeToOddPlusEven(sum[r][v], rest[r][v]), d,
                 out + r * kPanel + v * kLanes);
    }
  }
#endif
}

// Rows that share a panel's weights while these are in registers; limited by the number of
// registers.
constexpr int kPairRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
void PairSums(int rows, const std::byte* x, int64_t step, int64_t steps, const std::byte* w,
              int32_t* sums) {
  const auto* from = reinterpret_cast<const int16_t*>(x);
  const auto* weights = reinterpret_cast<const int16_t*>(w);
  step /= 2;
  int r = 0;
  for (; r + kPairRows <= rows; r += kPairRows) {
    PairSumsOf<kPairRows>(from + r * step, step, steps, weights, sums + r * kPanel);
  }
  for (; r + 4 <= rows; r += 4) {
    PairSumsOf<4>(from + r * step, step, steps, weights, sums + r * kPanel);
  }
  for (; r < rows; ++r) {
    PairSumsOf<1>(from + r * step, step, steps, weights, sums + r * kPanel);
  }
}

// Stores the first `count` lanes.
template <class T, class D, class V>
HWY_INLINE void StoreLanes(D d, V v, int64_t count, T* to) {
  if (count >= kLanes) return hn::StoreU(v, d, to);
  HWY_ALIGN T lanes[kLanes];
  hn::StoreU(v, d, lanes);
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(T));
}

// Stores the sums of a tile as elements of `d`, converted by what MakeEnd returns: `rows` rows from
// row `row` on, of the panel whose first column is `first`. Column by column, so that the terms of
// a column stay in registers.
template <class D, class MakeEnd>
HWY_INLINE void StoreTile(const ByteBlock& b, const int32_t* sums, int64_t row, int64_t rows,
                          int64_t first, D d, MakeEnd&& make_end) {
  constexpr Ints ints;
  using T = hn::TFromD<D>;
  const int32_t *row_sums = b.row_sums, *row_zeros = b.row_zeros;
  const int64_t n = b.n;
  for (int64_t c = first; c < std::min(first + kPanel, n); c += kLanes, sums += kLanes) {
    const auto terms = hn::LoadU(ints, b.terms + c);
    const auto zeros = row_sums == nullptr ? hn::Zero(ints) : hn::LoadU(ints, b.zeros + c);
    const auto column = row_zeros == nullptr ? hn::Zero(ints) : hn::LoadU(ints, b.column_sums + c);
    const auto end = make_end(c);
    T* y = reinterpret_cast<T*>(b.y) + row * n + c;
    for (int64_t r = 0; r < rows; ++r, y += n) {
      auto sum = hn::Add(hn::LoadU(ints, sums + r * kPanel), terms);
      if (row_sums != nullptr) {
        sum = hn::Sub(sum, hn::Mul(zeros, hn::Set(ints, row_sums[row + r])));
      }
      if (row_zeros != nullptr) {
        sum = hn::Sub(sum, hn::Mul(column, hn::Set(ints, row_zeros[row + r])));
      }
      StoreLanes(d, end(sum), n - c, y);
    }
  }
}

template <class T, bool kFixed>
HWY_INLINE void StoreRequantized(const ByteBlock& b, const int32_t* sums, int64_t row, int64_t rows,
                                 int64_t first) {
  constexpr hn::Rebind<T, Ints> narrow;
  StoreTile(b, sums, row, rows, first, narrow, [&](int64_t c) HWY_ATTR {
    const RuleLanes<kFixed> lanes(*b.rule, c);
    return [lanes](IntVector sum) HWY_ATTR { return Narrowed<T>(lanes(sum)); };
  });
}
// Stores real numbers. Both steps round, as the separate nodes would.
void StoreReal(const ByteBlock& b, const int32_t* sums, int64_t row, int64_t rows, int64_t first) {
  constexpr Floats d;
  StoreTile(b, sums, row, rows, first, d, [&](int64_t c) HWY_ATTR {
    const Vector scale = hn::LoadU(d, b.rule->scales + c);
    const Vector term =
        b.rule->terms == nullptr ? hn::Set(d, -0.0F) : hn::LoadU(d, b.rule->terms + c);
    return [scale, term](IntVector sum)
               HWY_ATTR { return hn::Add(hn::Mul(hn::ConvertTo(Floats(), sum), scale), term); };
  });
}

void StoreSums(const ByteBlock& b, const int32_t* sums, int64_t row, int64_t rows, int64_t first) {
  if (b.rule == nullptr) {
    StoreTile(b, sums, row, rows, first, Ints(),
              [](int64_t) HWY_ATTR { return [](IntVector sum) HWY_ATTR { return sum; }; });
    return;
  }
  if (b.rule->real()) return StoreReal(b, sums, row, rows, first);
  ForRequantized(b.rule->to, [&](auto like) HWY_ATTR {
    using T = decltype(like);
    if (b.rule->fixed()) {
      StoreRequantized<T, true>(b, sums, row, rows, first);
    } else {
      StoreRequantized<T, false>(b, sums, row, rows, first);
    }
  });
}

// Computes panels [first, last). The outer loop is over panels, so that a panel stays in the cache
// while all rows pass; tiles of rows are as even as possible.
void MultiplyBlock(const ByteBlock& b, int64_t first, int64_t last) {
  HWY_ALIGN int32_t sums[kMostTileRows * kPanel];
  const int64_t most = b.quads.run != nullptr ? b.quads.rows : kPairRows;
  const int64_t tiles = (b.rows + most - 1) / most;
  for (int64_t panel = first; panel < last; ++panel) {
    const std::byte* w = b.packed + panel * b.panel_bytes;
    QuadEnd end;
    if (b.bytes_end != nullptr) {
      end = *b.bytes_end;
      end.MoveTo(panel * kPanel, b.n, kPanel);
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t row = b.rows * tile / tiles;
      const int rows = static_cast<int>(b.rows * (tile + 1) / tiles - row);
      const std::byte* x = b.x + row * b.step;
      if (b.bytes_end != nullptr) {
        b.quads.run_to_bytes(rows, x, b.step, b.steps, w, end, b.y + row * b.n + panel * kPanel,
                             b.n);
        continue;
      }
      if (b.quads.run != nullptr) {
        b.quads.run(rows, x, b.step, b.steps, w, sums);
      } else {
        PairSums(rows, x, b.step, b.steps, w, sums);
      }
      StoreSums(b, sums, row, rows, panel * kPanel);
    }
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(WidenRow);
HWY_EXPORT(FlipRow);
HWY_EXPORT(MultiplyBlock);

// The sum of the bytes of a packed row. Wraps around.
int32_t SumOf(const std::byte* x, bool quads, int64_t k) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    sum += quads ? static_cast<uint32_t>(x[i])
                 : static_cast<uint32_t>(int32_t{reinterpret_cast<const int16_t*>(x)[i]});
  }
  return static_cast<int32_t>(sum);
}

// An element of the weights, in the form in which it is packed.
int32_t WeightAt(const ByteMatrix& w, bool quads, int64_t i, int64_t c) {
  const std::byte* at = w.data + i * w.row + c * w.column;
  if (w.is_signed) return *reinterpret_cast<const int8_t*>(at);
  return int32_t{*reinterpret_cast<const uint8_t*>(at)} - (quads ? 128 : 0);
}

// The bytes of rows that a worker fills at a time, so that they stay in its cache while it computes
// all panels; and the bytes of rows up to which all are filled first, so that workers can share the
// panels.
constexpr int64_t kFilledAtOnce = 1 << 17, kFilledBefore = 1 << 20;
// The least number of pieces of a product, and the most bytes of weights of a piece.
constexpr int64_t kPieces = 16, kWeightsAtOnce = 384 << 10;
// A product of at least this many rows is divided by rows alone if each worker's cache holds the
// weights: the same worker then reads in the next layer what it wrote in this one.
constexpr int64_t kManyRows = 192, kWeightsInCache = 1 << 20;
// Rows of a block.
constexpr int64_t kMostBlockRows = 96, kLeastBlockRows = 24;

class ByteProduct {
 public:
  ByteProduct(const Threads& threads, const std::byte* packed, int64_t k, int64_t n,
              const ByteRows& rows, FillByteRows fill, const ByteEnd& end)
      : threads_(threads),
        layout_(LayoutOfBytes()),
        k_(k),
        panels_(layout_.Panels(n)),
        rows_(rows),
        fill_(fill),
        y_(end.y),
        columns_(layout_, packed, k, n, rows, end) {
    block_.steps = layout_.Steps(k);
    block_.n = n;
    block_.packed = packed;
    block_.panel_bytes = layout_.PanelBytes(k);
    block_.quads = QuadSumsHere();
    if (!layout_.quads) block_.quads = {};
    row_bytes_y_ = n * (end.rule == nullptr ? int64_t{sizeof(int32_t)} : BytesOf(end.rule->to));
  }

  void Run() {
    const int64_t row_bytes = layout_.RowBytes(k_);
    if (rows_.in_place != nullptr) {
      if (columns_.NeedsRowSums()) {
        ParallelFor(threads_, rows_.count, GrainOf(k_, 4096), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            columns_.row_sums()[r] = SumOf(rows_.in_place + r * rows_.step, layout_.quads, k_);
          }
        });
      }
      return RunPieces(rows_.in_place, rows_.step);
    }
    if (!ByRows() && SaturatingMul(rows_.count, row_bytes) <= kFilledBefore) {
      const auto filled =
          std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(rows_.count * row_bytes));
      ParallelFor(threads_, rows_.count, GrainOf(k_ * 64, 64), [&](int64_t begin, int64_t end) {
        FillRows(begin, end, filled.get() + begin * row_bytes);
      });
      return RunPieces(filled.get(), row_bytes);
    }
    const int64_t blocks =
        BlocksOf(std::clamp<int64_t>(kFilledAtOnce / row_bytes, 12, kMostBlockRows));
    const int64_t block_bytes = (rows_.count + blocks - 1) / blocks * row_bytes;
    const auto filled = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<size_t>(WorkersOf(threads_) * block_bytes));
    ForParts(threads_, rows_.count, blocks, [&](int64_t begin, int64_t end, int worker) {
      std::byte* x = filled.get() + worker * block_bytes;
      FillRows(begin, end, x);
      RunBlock(x, row_bytes, begin, end, 0, panels_);
    });
  }

 private:
  static int64_t BytesOf(DType dtype) { return BitsOf(dtype) / 8; }

  void FillRows(int64_t begin, int64_t end, std::byte* to) {
    const int64_t bytes = layout_.RowBytes(k_), given = k_ * layout_.bytes();
    fill_(begin, end, to);
    for (int64_t r = begin; r < end && (bytes > given || columns_.NeedsRowSums());
         ++r, to += bytes) {
      std::fill(to + given, to + bytes, std::byte{0});
      if (columns_.NeedsRowSums()) columns_.row_sums()[r] = SumOf(to, layout_.quads, k_);
    }
  }

  void RunBlock(const std::byte* x, int64_t step, int64_t begin, int64_t end, int64_t first,
                int64_t last) const {
    ByteBlock block = block_;
    block.x = x;
    block.step = step;
    block.rows = end - begin;
    block.y = y_ + begin * row_bytes_y_;
    columns_.Give(&block, begin);
    HWY_DYNAMIC_DISPATCH(MultiplyBlock)(block, first, last);
  }

  int64_t weight_bytes() const { return SaturatingMul(panels_, block_.panel_bytes); }
  bool ByRows() const { return rows_.count >= kManyRows && weight_bytes() <= kWeightsInCache; }
  // The number of blocks of at most `most` rows each; the same number for each worker.
  int64_t BlocksOf(int64_t most) const {
    const int64_t count = rows_.count;
    const int64_t pieces = std::min(kPieces, (count + kLeastBlockRows - 1) / kLeastBlockRows);
    return EvenParts(threads_, count, std::max((count + most - 1) / most, pieces));
  }

  // Divides the product into pieces of rows and panels, once all rows are filled. Pieces of the
  // same panels follow one another, so that a worker keeps their weights in its cache.
  void RunPieces(const std::byte* x, int64_t step) const {
    const bool by_rows = ByRows();
    const int64_t blocks =
        by_rows ? BlocksOf(kMostBlockRows) : (rows_.count + kMostBlockRows - 1) / kMostBlockRows;
    int64_t groups =
        by_rows ? 1 : std::max((kPieces + blocks - 1) / blocks, weight_bytes() / kWeightsAtOnce);
    groups = std::clamp<int64_t>(groups, 1, panels_);
    ParallelFor(threads_, blocks * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t group = piece / blocks, at = piece % blocks;
        const int64_t row = rows_.count * at / blocks, past = rows_.count * (at + 1) / blocks;
        RunBlock(x + row * step, step, row, past, panels_ * group / groups,
                 panels_ * (group + 1) / groups);
      }
    });
  }

  const Threads& threads_;
  const ByteLayout layout_;
  const int64_t k_, panels_;
  const ByteRows& rows_;
  const FillByteRows fill_;
  std::byte* const y_;
  int64_t row_bytes_y_ = 0;
  ByteColumns columns_;
  ByteBlock block_;
};

}  // namespace

std::string ByteLayout::name() const { return StrCat(quads ? "quads" : "pairs", panel); }

ByteLayout LayoutOfBytes() {
  const QuadSums& quads = QuadSumsHere();
  const int64_t panel = HWY_DYNAMIC_DISPATCH(PanelWidth)();
  if (quads.run != nullptr && quads.panel == panel) return {true, panel, 4};
  return {false, panel, 2};
}

int64_t PackedByteSize(int64_t k, int64_t n) {
  const ByteLayout layout = LayoutOfBytes();
  const int64_t column = SaturatingAdd(layout.RowBytes(k), int64_t{sizeof(int32_t)});
  return SaturatingMul(layout.Panels(n) * layout.panel, column);
}

void PackBytes(const ByteMatrix& w, int64_t first, int64_t last, std::byte* to) {
  const ByteLayout layout = LayoutOfBytes();
  const int64_t panel_bytes = layout.PanelBytes(w.k);
  auto* sums = reinterpret_cast<int32_t*>(to + layout.Panels(w.n) * panel_bytes);
  for (int64_t panel = first; panel < last; ++panel) {
    std::byte* out = to + panel * panel_bytes;
    uint32_t columns[kMostPanel] = {};
    for (int64_t step = 0; step < layout.Steps(w.k); ++step) {
      for (int64_t c = 0; c < layout.panel; ++c) {
        const int64_t column = panel * layout.panel + c;
        for (int64_t i = step * layout.depth; i < (step + 1) * layout.depth; ++i) {
          // Columns and steps of K beyond the matrix are zero.
          int32_t weight = 0;
          if (column < w.n && i < w.k) weight = WeightAt(w, layout.quads, i, column);
          columns[c] += static_cast<uint32_t>(weight);
          if (layout.quads) {
            *reinterpret_cast<int8_t*>(out) = static_cast<int8_t>(weight);
          } else {
            const auto wide = static_cast<int16_t>(weight);
            std::memcpy(out, &wide, sizeof(wide));
          }
          out += layout.bytes();
        }
      }
    }
    for (int64_t c = 0; c < layout.panel; ++c) {
      sums[panel * layout.panel + c] = static_cast<int32_t>(columns[c]);
    }
  }
}

void PackAllBytes(const Threads& threads, const ByteMatrix& w, std::byte* to) {
  const int64_t panels = LayoutOfBytes().Panels(w.n);
  ParallelFor(threads, panels, GrainOf(w.k * 64, std::max<int64_t>(panels, 1)),
              [&](int64_t begin, int64_t end) { PackBytes(w, begin, end, to); });
}

CpuPacking PackingOfBytes(const ByteMatrix& w, std::string_view order) {
  return {StrCat(LayoutOfBytes().name(), order), PackedByteSize(w.k, w.n),
          [w](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
            ByteMatrix given = w;
            given.data = constant.bytes().data();
            PackAllBytes(threads, given, to.data());
            return Status();
          }};
}

namespace {
// Copies n bytes, up to 16 of them without a call: windows of few channels are made of runs so
// short that calls would dominate.
void CopyBytes(const std::byte* from, int64_t n, std::byte* to) {
  const auto both_ends = [&]<class Word>(Word first) {
    Word last;
    std::memcpy(&first, from, sizeof(Word));
    std::memcpy(&last, from + n - sizeof(Word), sizeof(Word));
    std::memcpy(to, &first, sizeof(Word));
    std::memcpy(to + n - sizeof(Word), &last, sizeof(Word));
  };
  if (n > 64) {
    std::memcpy(to, from, static_cast<size_t>(n));
  } else if (n > 32) {
    both_ends(std::array<uint64_t, 4>{});
  } else if (n > 16) {
    both_ends(std::array<uint64_t, 2>{});
  } else if (n >= 8) {
    both_ends(uint64_t{});
  } else if (n >= 4) {
    both_ends(uint32_t{});
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}
}  // namespace

void ByteFiller::Fill(const std::byte* x, int64_t n, std::byte* row, int64_t at) const {
  std::byte* to = row + at * layout_.bytes();
  if (!layout_.quads) {
    HWY_DYNAMIC_DISPATCH(WidenRow)(x, is_signed_, n, zero_, reinterpret_cast<int16_t*>(to));
  } else if (is_signed_) {
    HWY_DYNAMIC_DISPATCH(FlipRow)(x, n, to);
  } else {
    CopyBytes(x, n, to);
  }
}

void ByteFiller::FillRuns(const std::byte* x, std::span<const ByteRun> runs, std::byte* row) const {
  if (layout_.quads && !is_signed_) {
    for (const ByteRun& run : runs) CopyBytes(x + run.from, run.bytes, row + run.at);
  } else {
    for (const ByteRun& run : runs) Fill(x + run.from, run.bytes, row, run.at);
  }
}

void ByteFiller::FillZeros(int64_t n, std::byte* row) const {
  const int value = layout_.quads ? zero_ + (is_signed_ ? 128 : 0) : 0;
  std::memset(row, value, static_cast<size_t>(n * layout_.bytes()));
}

bool ReadsInPlace(int64_t k, bool is_signed) {
  const ByteLayout layout = LayoutOfBytes();
  return layout.quads && !is_signed && k % layout.depth == 0;
}

void MultiplyByteBlock(const ByteBlock& block, int64_t first, int64_t last) {
  HWY_DYNAMIC_DISPATCH(MultiplyBlock)(block, first, last);
}

void MultiplyBytes(const Threads& threads, const std::byte* packed, int64_t k, int64_t n,
                   const ByteRows& rows, FillByteRows fill, const ByteEnd& end) {
  if (rows.count == 0 || n == 0) return;
  ByteProduct(threads, packed, k, n, rows, fill, end).Run();
}

}  // namespace oncilla::cpu
#endif
