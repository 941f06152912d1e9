// Products of rows that are rounded to bytes, against the rule in plain words: both widths of
// panels, all numbers of bits, blocks that do not fill a word, and rows that no bytes stand for.
#include "backends/cpu/fast/rounded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace oncilla::cpu {
namespace {

struct Weights {
  PackedPanel panel;
  std::vector<uint8_t> codes;
  std::vector<float> scales, zeros;

  Weights(int64_t bits, int64_t block, int64_t depth, int64_t width, bool has_zeros,
          std::mt19937& rng) {
    panel.bits = bits;
    panel.block = block;
    panel.depth = depth;
    panel.width = width;
    panel.blocks = (depth + block - 1) / block;
    panel.block_words = (block * bits + 31) / 32;
    // Numbers behind a block's end must not count.
    codes.resize(static_cast<size_t>(panel.blocks * panel.block_words * width * kWordBytes));
    for (uint8_t& code : codes) code = static_cast<uint8_t>(rng());
    std::uniform_real_distribution<float> scale(0.01F, 0.1F);
    for (int64_t i = 0; i < panel.blocks * width; ++i) {
      scales.push_back(scale(rng));
      zeros.push_back(static_cast<float>(rng() % (1U << bits)));
    }
    panel.codes = codes.data();
    panel.scales = scales.data();
    if (has_zeros) panel.zeros = zeros.data();
  }
  double At(int64_t k, int64_t column) const {
    const int64_t b = k / panel.block, bit = k % panel.block * panel.bits;
    const int64_t word = b * panel.block_words + bit / 32;
    const uint8_t byte =
        codes[static_cast<size_t>((word * panel.width + column) * kWordBytes + bit % 32 / 8)];
    const int code = (byte >> (bit % 8)) & ((1 << panel.bits) - 1);
    const auto at = static_cast<size_t>(b * panel.width + column);
    const double zero = panel.zeros != nullptr ? zeros[at] : 1 << (panel.bits - 1);
    return (code - zero) * scales[at];
  }
};

// The rounded value of x[k] within its block.
double Rounded(const float* x, int64_t k, const PackedPanel& p) {
  const int64_t first = k / p.block * p.block, end = std::min(first + p.block, p.depth);
  float largest = 0;
  for (int64_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest == 0 ? 0.0 : std::nearbyint(x[k] * (127 / largest)) * (largest / 127);
}

TEST(RoundedRows, MultiplyAsTheRuleSays) {
  std::mt19937 rng(3);
  std::normal_distribution<float> number(0, 1);
  int found = 0;
  for (const int64_t width : {16, 32}) {
    for (const int64_t bits : {2, 4, 8}) {
      const MultiplyRounded multiply = MultiplyRoundedFor(bits, width);
      if (multiply == nullptr) continue;
      ++found;
      for (const auto& [block, depth] : {std::pair<int64_t, int64_t>{32, 128},
                                         {32, 100},
                                         {16, 16},
                                         {128, 300},
                                         {20, 50},
                                         {256, 700}}) {
        for (int64_t rows = 1; rows <= 6; ++rows) {
          const Weights w(bits, block, depth, width, rows % 2 == 0, rng);
          std::vector<float> x(static_cast<size_t>(rows * depth));
          for (float& v : x) v = number(rng);
          std::fill_n(x.begin(), std::min(block, depth), 0.0F);  // a block without a scale
          const auto rounded = RoundRows(x.data(), rows, w.panel);
          ASSERT_TRUE(rounded.has_value());
          const int64_t step = width + 3;
          std::vector<float> y(static_cast<size_t>(rows * step), -1);
          multiply(w.panel, *rounded, y.data(), step);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < width; ++c) {
              double sum = 0, magnitudes = 0;
              for (int64_t k = 0; k < depth; ++k) {
                const double product = Rounded(x.data() + r * depth, k, w.panel) * w.At(k, c);
                sum += product;
                magnitudes += std::fabs(product);
              }
              ASSERT_NEAR(y[static_cast<size_t>(r * step + c)], sum, 1e-5 * (1 + magnitudes))
                  << bits << " bits, blocks of " << block << " of " << depth << ", row " << r
                  << " of " << rows << ", column " << c;
            }
          }
          for (int64_t r = 0; r < rows; ++r)
            EXPECT_EQ(y[static_cast<size_t>(r * step + width)], -1);
        }
      }
    }
  }
  if (found == 0) GTEST_SKIP() << "this processor has neither AVX-512 VNNI nor AVX2";
}

TEST(RoundedRows, NumbersThatAreNotFiniteAreRefused) {
  if (MultiplyRoundedFor(4, 16) == nullptr) GTEST_SKIP() << "no AVX2";
  std::mt19937 rng(4);
  const Weights w(4, 32, 70, 16, false, rng);
  for (const float bad : {std::numeric_limits<float>::infinity(), -INFINITY, NAN}) {
    for (const size_t at : {size_t{0}, size_t{31}, size_t{64}, size_t{69}}) {
      std::vector<float> x(70, 1.0F);
      x[at] = bad;
      EXPECT_FALSE(RoundRows(x.data(), 1, w.panel).has_value()) << bad << " at " << at;
    }
  }
  // Numbers so small that their scale has no reciprocal count as zeros.
  const std::vector<float> tiny(70, 1e-40F);
  const auto rounded = RoundRows(tiny.data(), 1, w.panel);
  ASSERT_TRUE(rounded.has_value());
  for (const int32_t sum : rounded->sums) EXPECT_EQ(sum, 0);
}

}  // namespace
}  // namespace oncilla::cpu
