// Products of bfloat16 by pairs must equal the portable rule (PairStep), bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/pair_tile.h"
#include "backends/cpu/kernel.h"

namespace oncilla::cpu {
namespace {

using Numbers = std::vector<BFloat16>;

bool HasPairs() { return PairTilesHere() != nullptr && PanelColumns() == PairTiles::kColumns; }

Numbers Random(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  Numbers numbers(static_cast<size_t>(n));
  for (BFloat16& x : numbers) x = BFloat16(normal(rng));
  return numbers;
}

// A product of rows that may consist of several runs, with its operands.
struct Case {
  int64_t rows = 1, columns = 1, run = 1, run_step = 1;
  std::vector<int64_t> taps = {0};
  int64_t row_step = 0;
  bool bias = false, residual = false;
  Activation activation = Activation::kNone;

  int64_t depth() const { return static_cast<int64_t>(taps.size()) * run; }
  int64_t a_elements() const {
    const int64_t last_tap = *std::max_element(taps.begin(), taps.end());
    return (rows - 1) * row_step + last_tap + (run - 1) * run_step + 1;
  }
};

struct Operands {
  Numbers a, b, bias, residual;
  explicit Operands(const Case& c)
      : a(Random(c.a_elements(), 1)),
        b(Random(c.depth() * c.columns, 2)),
        bias(Random(c.columns, 3)),
        residual(Random(c.rows * c.columns, 4)) {}
};

// The sums in the order in which tiles add them up, before the activation.
std::vector<float> Expected(const Case& c, const Operands& o) {
  const int64_t depth = c.depth();
  const auto a_at = [&](int64_t row, int64_t k) {
    if (k >= depth) return BFloat16();
    const int64_t tap = c.taps[static_cast<size_t>(k / c.run)];
    return o.a[static_cast<size_t>(row * c.row_step + tap + k % c.run * c.run_step)];
  };
  const auto b_at = [&](int64_t k, int64_t column) {
    return k < depth ? o.b[static_cast<size_t>(k * c.columns + column)] : BFloat16();
  };
  std::vector<float> sums;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t column = 0; column < c.columns; ++column) {
      float sum = c.bias ? float{o.bias[static_cast<size_t>(column)]} : 0.0f;
      for (int64_t k = 0; k < depth; k += 2) {
        sum =
            PairStep(sum, {a_at(row, k), a_at(row, k + 1)}, {b_at(k, column), b_at(k + 1, column)});
      }
      if (c.residual) sum += float{o.residual[static_cast<size_t>(row * c.columns + column)]};
      sums.push_back(sum);
    }
  }
  return sums;
}

Numbers Computed(const Case& c, const Operands& o) {
  std::vector<BFloat16Pair> packed(
      static_cast<size_t>(PackedCount<BFloat16Pair>(c.depth(), c.columns)));
  Pack(Threads(), o.b.data(), c.columns, 1, c.depth(), c.columns, packed.data());
  // A number after the result must not be overwritten.
  Numbers result(static_cast<size_t>(c.rows * c.columns + 1), BFloat16(77.0f));
  Product<BFloat16, BFloat16Pair> p;
  p.line_rows = c.rows;
  p.row_step = c.row_step;
  p.run_step = c.run_step;
  p.taps = c.taps.data();
  p.tap_count = static_cast<int64_t>(c.taps.size());
  p.run = c.run;
  p.columns = p.c_step = c.columns;
  p.a = o.a.data();
  p.b = packed.data();
  p.c = result.data();
  p.epilogue = {c.bias ? o.bias.data() : nullptr, c.residual ? o.residual.data() : nullptr,
                c.activation};
  const Split split = SplitOf(p);
  for (int64_t i = 0; i < split.tasks(); ++i) RunTask(p, split, i);
  EXPECT_EQ(float{result.back()}, 77.0f);
  result.pop_back();
  return result;
}

void ExpectSame(const Case& c) {
  const Operands operands(c);
  const std::vector<float> sums = Expected(c, operands);
  const Numbers result = Computed(c, operands);
  for (size_t i = 0; i < sums.size(); ++i) {
    float y = sums[i];
    if (c.activation == Activation::kRelu) y = std::max(y, 0.0f);
    ASSERT_EQ(result[i].bits, BFloat16(y).bits) << "element " << i << ", " << y;
  }
}

TEST(PairProduct, EveryHeightAndWidthOfTile) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  for (int64_t rows = 1; rows <= 14; ++rows) {
    for (const int64_t columns : {1, 15, 16, 17, 32, 33, 64}) {
      ExpectSame({.rows = rows, .columns = columns, .run = 6, .row_step = 6});
    }
  }
}

TEST(PairProduct, RowsOfSeveralRuns) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  // In place; copied, since the runs are odd; copied, since their elements are not contiguous.
  ExpectSame({.rows = 20, .columns = 40, .run = 8, .taps = {0, 50, 3}, .row_step = 4});
  ExpectSame({.rows = 20, .columns = 40, .run = 7, .taps = {0, 50, 3}, .row_step = 3});
  ExpectSame({.rows = 20, .columns = 40, .run = 10, .run_step = 20, .row_step = 1});
}

TEST(PairProduct, BiasResidualAndBounds) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  for (const int64_t run : {31, 64}) {
    ExpectSame({.rows = 29,
                .columns = 50,
                .run = run,
                .row_step = run,
                .bias = true,
                .residual = true,
                .activation = Activation::kRelu});
  }
}

TEST(PairProduct, LongSumsAreCopiedInStretches) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  // 8191: the second stretch is the longest there is.
  for (const int64_t run : {4095, 4097, 8191, 9001}) {
    ExpectSame(
        {.rows = 15, .columns = 3, .run = run, .row_step = run, .bias = true, .residual = true});
  }
}

TEST(PairProduct, CurvedActivations) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  Case c{.rows = 17, .columns = 37, .run = 24, .row_step = 24, .bias = true, .residual = true};
  c.activation = Activation::kSilu;
  const Operands operands(c);
  const std::vector<float> sums = Expected(c, operands);
  const Numbers result = Computed(c, operands);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double y = Apply(Activation::kSilu, double{sums[i]});
    ASSERT_NEAR(float{result[i]}, y, 0.004 * std::abs(y) + 1e-5) << i;
  }
}

TEST(PairProduct, InfinitiesAndNanGoThrough) {
  if (!HasPairs()) GTEST_SKIP() << "no AVX-512 BF16";
  Case c{.rows = 3, .columns = 2, .run = 2, .row_step = 2, .activation = Activation::kRelu};
  Operands operands(c);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float a[] = {kInf, 1, std::nanf(""), 1, 1, 1}, b[] = {1, -1, 1, 1};
  for (size_t i = 0; i < 6; ++i) operands.a[i] = BFloat16(a[i]);
  for (size_t i = 0; i < 4; ++i) operands.b[i] = BFloat16(b[i]);
  const Numbers y = Computed(c, operands);
  EXPECT_EQ(float{y[0]}, kInf);
  EXPECT_EQ(float{y[1]}, 0.0f);
  EXPECT_TRUE(std::isnan(float{y[2]}));
  EXPECT_TRUE(std::isnan(float{y[3]}));
  EXPECT_EQ(float{y[4]}, 2.0f);
}

TEST(PairTile, StepsAreWhatTheProcessorComputes) {
  if (PairTilesHere() == nullptr) GTEST_SKIP() << "no AVX-512 BF16";
  // All kinds of numbers: arbitrary bits, numbers near one another, and sums near 2^-126.
  std::mt19937 rng(5);
  static constexpr int64_t kOneTap = 0;
  for (int i = 0; i < 12000; ++i) {
    const int kind = i % 3;
    const auto number = [&] {
      const uint32_t exponent = kind == 0   ? rng() % 256
                                : kind == 1 ? 120 + rng() % 8
                                            : 60 + rng() % 8;
      BFloat16 x;
      x.bits = static_cast<uint16_t>((rng() & 0x807fu) | exponent << 7);
      return x;
    };
    const BFloat16 a[2] = {number(), number()};
    std::vector<BFloat16Pair> b(PairTiles::kColumns);
    for (BFloat16Pair& pair : b) pair = {number(), number()};
    float sums[PairTiles::kColumns];
    for (float& sum : sums) {
      const uint32_t exponent = kind == 0 ? rng() % 256 : kind == 1 ? 125 + rng() % 4 : rng() % 4;
      sum = std::bit_cast<float>(static_cast<uint32_t>((rng() & 0x807fffffu) | exponent << 23));
    }
    std::vector<float> expected;
    for (size_t c = 0; c < b.size(); ++c) expected.push_back(PairStep(sums[c], {a[0], a[1]}, b[c]));
    PairTile tile;
    tile.a = a;
    tile.taps = &kOneTap;
    tile.pairs = 1;
    tile.b = b.data();
    tile.columns = PairTiles::kColumns;
    tile.sums = sums;
    tile.from_sums = tile.to_sums = true;
    PairTilesHere()->run(1, tile);
    for (size_t c = 0; c < b.size(); ++c) {
      if (std::isnan(expected[c]) && std::isnan(sums[c])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(expected[c]), std::bit_cast<uint32_t>(sums[c]))
          << expected[c] << " " << sums[c];
    }
  }
}

}  // namespace
}  // namespace oncilla::cpu
