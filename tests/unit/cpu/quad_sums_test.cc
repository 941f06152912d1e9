// Sums of products of bytes that become bytes tile by tile, against the rule in plain words: every
// height of tile, parts of a panel, both signs, narrow bounds, and sums beyond any byte.
#include "backends/cpu/integer/quad_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

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

// What RequantizeAttrs says, in floats.
int Expected(const Tile& tile, const QuadEnd& end, int row, int column) {
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
        end = {end.terms,
               end.scales,
               static_cast<float>(255 - zero),
               static_cast<int16_t>(zero),
               0,
               255,
               false,
               columns};
        IsAsExpected(tile, end);
      }
      for (const int zero : {-128, 0, 5}) {
        end = {end.terms,
               end.scales,
               static_cast<float>(100 - zero),
               static_cast<int16_t>(zero),
               -30,
               100,
               true,
               columns};
        IsAsExpected(tile, end);
      }
    }
  }
}

}  // namespace
}  // namespace oncilla::cpu
