// Sums of products of bytes that become bytes tile by tile, against the rule in plain words: every
// height of tile, parts of a panel, both signs, narrow bounds, and sums beyond any byte.
#include "backends/cpu/integer/quad_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/integer/fixed_in_floats.h"
#include "engine/ops/nn/integer.h"

namespace oncilla::cpu {
namespace {

struct Tile {
  static constexpr int64_t kStep = 40;  // bytes from one row of x to the next
  int rows = 1, panel = 32, columns = 32;
  int64_t steps = 9;
  std::vector<uint8_t> x;
  std::vector<int8_t> w;
  std::vector<int32_t> terms;
  std::vector<float> scales;

  Tile(int rows, int panel, int columns, std::mt19937& rng)
      : rows(rows), panel(panel), columns(columns) {
    std::uniform_int_distribution<int> byte(0, 255), term(-40000, 40000);
    std::uniform_real_distribution<float> scale(1e-3F, 1e-2F);
    for (int64_t i = 0; i < rows * kStep; ++i) x.push_back(static_cast<uint8_t>(byte(rng)));
    for (int64_t i = 0; i < steps * panel * 4; ++i)
      w.push_back(static_cast<int8_t>(byte(rng) - 128));
    for (int c = 0; c < panel; ++c) {
      terms.push_back(term(rng));
      scales.push_back(scale(rng));
    }
    // Sums that wrap around, and products that exceed 32 bits, of either sign.
    terms[0] = INT32_MAX;
    terms[1] = INT32_MIN + 5;
    scales[2] = 1e30F;
    scales[3] = -1e30F;
  }

  int32_t Sum(int row, int column) const {
    auto sum = static_cast<uint32_t>(terms[static_cast<size_t>(column)]);
    for (int64_t i = 0; i < 4 * steps; ++i) {
      const int in = x[static_cast<size_t>(row * kStep + i)];
      sum +=
          static_cast<uint32_t>(in * w[static_cast<size_t>((i / 4 * panel + column) * 4 + i % 4)]);
    }
    return static_cast<int32_t>(sum);
  }
};

// What RequantizeAttrs says, in floats or in fixed point.
int Expected(const Tile& tile, const QuadEnd& end, int row, int column) {
  if (end.halves != nullptr) {
    const int y = MultiplyFixed(tile.Sum(row, column), end.multipliers[column], end.shifts[column]);
    return std::clamp<int>(y + end.zero, end.least_byte, end.most_byte);
  }
  const float least = static_cast<float>(end.least_byte - end.zero);
  const float real =
      static_cast<float>(tile.Sum(row, column)) * tile.scales[static_cast<size_t>(column)];
  return static_cast<int>(std::nearbyint(std::clamp(real, least, end.most))) + end.zero;
}

void IsAsExpected(const Tile& tile, const QuadEnd& end) {
  constexpr int64_t kYStep = 50;
  constexpr auto kUntouched = std::byte{0xA5};
  std::vector<std::byte> y(static_cast<size_t>(tile.rows * kYStep), kUntouched);
  QuadSumsHere().run_to_bytes(
      tile.rows, reinterpret_cast<const std::byte*>(tile.x.data()), Tile::kStep, tile.steps,
      reinterpret_cast<const std::byte*>(tile.w.data()), end, y.data(), kYStep);
  for (int r = 0; r < tile.rows; ++r) {
    for (int64_t c = 0; c < kYStep; ++c) {
      const std::byte at = y[static_cast<size_t>(r * kYStep + c)];
      if (c >= tile.columns) {
        ASSERT_EQ(at, kUntouched) << "behind the columns of row " << r;
        continue;
      }
      const int got = end.is_signed ? int{static_cast<int8_t>(at)} : int{static_cast<uint8_t>(at)};
      ASSERT_EQ(got, Expected(tile, end, r, static_cast<int>(c))) << "row " << r << " column " << c;
    }
  }
}

void SetRange(QuadEnd& end, int zero, int least, int most, bool is_signed) {
  end.zero = static_cast<int16_t>(zero);
  end.least_byte = static_cast<int16_t>(least);
  end.most_byte = static_cast<int16_t>(most);
  end.most = static_cast<float>(most - zero);
  end.is_signed = is_signed;
}

TEST(QuadSums, BecomeBytesAsTheRuleSays) {
  const QuadSums& quads = QuadSumsHere();
  if (quads.run_to_bytes == nullptr) GTEST_SKIP() << "this processor has no such instructions";
  std::mt19937 rng(3);
  for (int rows = 1; rows <= quads.rows; ++rows) {
    for (const int columns : {quads.panel, quads.panel - 7, 4}) {
      const Tile tile(rows, quads.panel, columns, rng);
      QuadEnd end;
      end.terms = tile.terms.data();
      end.scales = tile.scales.data();
      end.columns = columns;
      for (const int zero : {0, 17, 255}) {
        SetRange(end, zero, 0, 255, false);
        IsAsExpected(tile, end);
      }
      for (const int zero : {-128, 0, 5}) {
        SetRange(end, zero, -30, 100, true);
        IsAsExpected(tile, end);
      }
    }
  }
}

// Multipliers of a half make every second or fourth result a tie.
TEST(QuadSums, BecomeBytesByTheRuleOfFixedPoint) {
  const QuadSums& quads = QuadSumsHere();
  if (quads.run_to_bytes == nullptr) GTEST_SKIP() << "this processor has no such instructions";
  std::mt19937 rng(4);
  for (int rows = 1; rows <= quads.rows; ++rows) {
    for (const int columns : {quads.panel, quads.panel - 7, 4}) {
      const Tile tile(rows, quads.panel, columns, rng);
      std::vector<int32_t> multipliers, shifts;
      std::vector<float> scales, halves;
      for (int c = 0; c < quads.panel; ++c) {
        multipliers.push_back(c % 3 == 0 ? 1 << 30
                                         : static_cast<int32_t>((1u << 30) + rng() % (1u << 30)));
        shifts.push_back(-1 - static_cast<int32_t>(rng() % (c % 3 == 0 ? 3 : 14)));
        const FixedFloats floats = FloatsOfFixed(multipliers.back(), shifts.back());
        scales.push_back(floats.scale);
        halves.push_back(floats.half);
      }
      QuadEnd end;
      end.terms = tile.terms.data();
      end.scales = scales.data();
      end.halves = halves.data();
      end.multipliers = multipliers.data();
      end.shifts = shifts.data();
      end.columns = columns;
      SetRange(end, 17, 0, 255, false);
      IsAsExpected(tile, end);
      SetRange(end, -5, -100, 127, true);
      IsAsExpected(tile, end);
    }
  }
}

// Every sum around each of a multiplier's thresholds, and the largest sums.
TEST(FixedInFloats, IsCertainWhereItDiffers) {
  std::mt19937 rng(5);
  for (int round = 0; round < 3000; ++round) {
    const auto multiplier = static_cast<int32_t>((1u << 30) + rng() % (1u << 30));
    const auto shift = static_cast<int32_t>(-1 - static_cast<int32_t>(rng() % 16));
    const FixedFloats floats = FloatsOfFixed(multiplier, shift);
    const double factor = std::ldexp(static_cast<double>(multiplier), shift - 31);
    for (int result = -256; result < 256; ++result) {
      const auto threshold = static_cast<int64_t>((result + 0.5) / factor);
      for (int64_t x = threshold - 2; x <= threshold + 2; ++x) {
        if (x != static_cast<int32_t>(x)) continue;
        const auto value = static_cast<float>(x);
        const float moved = value * floats.scale + std::copysign(floats.half, value);
        const float nearest = std::nearbyint(moved);
        if (std::abs(moved - nearest) >= kCertain) continue;
        ASSERT_EQ(static_cast<int32_t>(nearest),
                  MultiplyFixed(static_cast<int32_t>(x), multiplier, shift))
            << x << " by " << multiplier << " and " << shift;
      }
    }
  }
}

}  // namespace
}  // namespace oncilla::cpu
