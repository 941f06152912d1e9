// Winograd's convolution against sums in double: all borders, odd sizes, several blocks, wide
// ranges; infinities, NaN and overflow exactly where sums in double have them; bit-identical
// results with any number of threads.
#include "backends/cpu/conv/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backends/cpu/windows.h"

namespace oncilla::cpu {
namespace {

struct Problem {
  WindowGeometry g;
  int tile = 2;
  std::vector<float> x, filter, bias, residual;
  Activation activation = Activation::kNone;
};

WindowAxis Axis(int64_t in, int64_t pad_begin, int64_t pad_end) {
  return {.in = in,
          .out = in + pad_begin + pad_end - 2,
          .kernel = 3,
          .pad_begin = pad_begin,
          .pad_end = pad_end};
}

std::vector<float> Numbers(int64_t count, int seed, float low = -1, float high = 1) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> v(static_cast<size_t>(count));
  for (float& f : v) f = uniform(random);
  return v;
}

Problem Make(int tile, int64_t batch, const WindowAxis& height, const WindowAxis& width,
             int64_t channels, int64_t columns) {
  Problem p;
  p.tile = tile;
  p.g.batch = batch;
  p.g.axis[1] = height;
  p.g.axis[2] = width;
  p.g.in_channels = channels;
  p.g.out_channels = columns;
  p.x = Numbers(batch * p.g.in_pixels() * channels, 1);
  p.filter = Numbers(9 * channels * columns, 2);
  return p;
}

std::vector<double> Expected(const Problem& p) {
  const int64_t channels = p.g.in_channels, columns = p.g.out_channels;
  std::vector<double> y(static_cast<size_t>(p.g.batch * p.g.out_pixels() * columns));
  for (int64_t pixel = 0; pixel < p.g.batch * p.g.out_pixels(); ++pixel) {
    double* sums = y.data() + pixel * columns;
    for (int64_t n = 0; n < columns; ++n) {
      if (!p.bias.empty()) sums[n] += static_cast<double>(p.bias[n]);
      if (!p.residual.empty()) sums[n] += static_cast<double>(p.residual[pixel * columns + n]);
    }
    ForTaps(p.g, pixel, [&](int64_t at, int64_t tap) {
      for (int64_t c = 0; c < channels; ++c) {
        const auto value = static_cast<double>(p.x[at * channels + c]);
        const float* row = p.filter.data() + (tap * channels + c) * columns;
        for (int64_t n = 0; n < columns; ++n) sums[n] += value * static_cast<double>(row[n]);
      }
    });
    for (int64_t n = 0; n < columns; ++n) {
      sums[n] = static_cast<double>(static_cast<float>(Apply(p.activation, sums[n])));
    }
  }
  return y;
}

std::vector<float> Computed(const Problem& p, ThreadPool* threads = nullptr) {
  const Winograd winograd(p.g, p.tile);
  std::vector<float> packed(static_cast<size_t>(winograd.filter().packed_bytes() + 3) / 4, NAN);
  winograd.filter().Pack({}, p.filter.data(), true,
                         std::as_writable_bytes(std::span(packed))
                             .first(static_cast<size_t>(winograd.filter().packed_bytes())));
  EXPECT_EQ(WinogradFilter::DirectPanels(packed.data()), nullptr);
  std::vector<float> scratch(static_cast<size_t>(winograd.scratch_bytes() / 4), NAN);
  std::vector<float> y(static_cast<size_t>(p.g.batch * p.g.out_pixels() * p.g.out_channels), -1);
  winograd.Run(threads, p.x.data(), packed.data(), y.data(),
               {p.bias.empty() ? nullptr : p.bias.data(),
                p.residual.empty() ? nullptr : p.residual.data(), p.activation},
               scratch.data());
  return y;
}

// The tolerance of cases (tests/case_runner/case_file.h), which also requires equal infinities.
void ExpectRight(const Problem& p) {
  const std::vector<double> expected = Expected(p);
  const std::vector<float> y = Computed(p);
  ASSERT_EQ(y.size(), expected.size());
  double largest = 0;
  for (double v : expected) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  int wrong = 0;
  for (size_t i = 0; i < y.size() && wrong < 4; ++i) {
    const auto got = static_cast<double>(y[i]);
    const double want = expected[i];
    const bool right = std::isnan(want) ? std::isnan(got)
                       : std::isinf(want)
                           ? got == want
                           : std::abs(got - want) <= 1e-5 * (std::abs(want) + 0.1 * largest);
    if (right) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << " is " << got << ", expected " << want << "; largest "
                  << largest << ", tile " << p.tile;
  }
}

TEST(WinogradTest, EveryBorder) {
  for (const int tile : {2, 4}) {
    for (int64_t in = 1; in <= 9; ++in) {
      for (const auto& [before, after] : {std::pair{0, 0}, {1, 1}, {0, 1}, {2, 0}, {2, 3}}) {
        if (in + before + after < 3) continue;
        SCOPED_TRACE(StrCat(in, " padded by ", before, " and ", after));
        ExpectRight(Make(tile, 1, Axis(in, before, after), Axis(10 - in + 2, after, before), 3, 5));
      }
    }
  }
}

TEST(WinogradTest, ChannelsAndBatches) {
  for (const int tile : {2, 4}) {
    for (const auto& [channels, columns] :
         {std::pair{1, 1}, {16, 32}, {17, 33}, {64, 64}, {31, 100}, {130, 40}}) {
      SCOPED_TRACE(StrCat(channels, " to ", columns));
      ExpectRight(Make(tile, 3, Axis(7, 1, 1), Axis(6, 1, 1), channels, columns));
    }
  }
}

TEST(WinogradTest, SeveralBlocks) {
  for (const int tile : {2, 4}) {
    Problem p = Make(tile, 2, Axis(45, 1, 1), Axis(43, 1, 0), 24, 20);
    const Winograd winograd(p.g, tile);
    EXPECT_GT(winograd.tiles(), winograd.block_tiles());
    ExpectRight(p);
  }
}

TEST(WinogradTest, Epilogues) {
  for (const int tile : {2, 4}) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kRelu6, Activation::kSilu,
          Activation::kGelu, Activation::kSigmoid, Activation::kTanh, Activation::kHardSwish}) {
      SCOPED_TRACE(Name(activation));
      Problem p = Make(tile, 1, Axis(7, 1, 1), Axis(9, 1, 1), 5, 19);
      p.activation = activation;
      p.filter = Numbers(9 * 5 * 19, 2, -0.3f, 0.3f);
      p.bias = Numbers(19, 3);
      ExpectRight(p);
      p.residual = Numbers(p.g.out_pixels() * 19, 4);
      ExpectRight(p);
      p.bias.clear();
      ExpectRight(p);
    }
  }
}

TEST(WinogradTest, WideRangesAndOffsets) {
  for (const int tile : {2, 4}) {
    Problem p = Make(tile, 1, Axis(30, 1, 1), Axis(30, 1, 1), 64, 64);
    ExpectRight(p);
    Problem offset = p;
    for (float& v : offset.x) v += 1000;
    ExpectRight(offset);
    Problem wide = p;
    const std::vector<float> powers = Numbers(static_cast<int64_t>(p.x.size()), 5, -6, 6);
    for (size_t i = 0; i < p.x.size(); ++i) wide.x[i] *= std::pow(10.0f, powers[i]);
    ExpectRight(wide);
    Problem uneven = p;
    for (size_t i = 0; i < p.filter.size(); ++i) uneven.filter[i] *= std::pow(10.0f, powers[i] / 4);
    ExpectRight(uneven);
  }
}

TEST(WinogradTest, ThreadsDoNotChangeBits) {
  for (const int tile : {2, 4}) {
    const Problem p = Make(tile, 2, Axis(45, 1, 1), Axis(43, 1, 0), 40, 70);
    const std::vector<float> alone = Computed(p);
    for (const int count : {1, 2, 5}) {
      ThreadPool threads(count);
      const std::vector<float> y = Computed(p, &threads);
      EXPECT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0) << count;
    }
  }
}

// Weights among which are zeros and some that rounding loses beside their neighbours, of both
// signs: an infinity times one of them must give the same as with the original weight.
TEST(WinogradTest, InfinitiesAndNanStandWhereSumsHaveThem) {
  const float inf = INFINITY;
  for (const int tile : {2, 4}) {
    Problem p = Make(tile, 1, Axis(11, 1, 1), Axis(10, 1, 1), 6, 37);
    for (size_t i = 0; i < p.filter.size(); ++i) {
      if (i % 3 == 0) p.filter[i] = 0;
      if (i % 7 == 1) p.filter[i] *= 1e-12f;
      if (i % 11 == 2) p.filter[i] *= 1e-38f;
    }
    for (const float strange : {inf, -inf, NAN}) {
      for (size_t pixel = 0; pixel < 110; pixel += 7) {
        SCOPED_TRACE(StrCat(strange, " in pixel ", pixel));
        Problem one = p;
        one.x[pixel * 6 + pixel % 6] = strange;
        ExpectRight(one);
        one.activation = Activation::kRelu;
        ExpectRight(one);
        one.x[(pixel + 12) % 110 * 6] = -inf;
        ExpectRight(one);
      }
    }
    Problem all = p;
    std::fill(all.x.begin(), all.x.end(), inf);
    ExpectRight(all);
    std::fill(all.x.begin(), all.x.end(), NAN);
    ExpectRight(all);
    // From the epilogue, not from the convolution.
    Problem after = p;
    after.bias = Numbers(37, 3);
    after.bias[5] = inf;
    after.residual = Numbers(110 * 37, 4);
    after.residual[200] = NAN;
    ExpectRight(after);
  }
}

TEST(WinogradTest, OverflowOnTheWayIsNotOneOfTheResult) {
  for (const int tile : {2, 4}) {
    Problem p = Make(tile, 1, Axis(9, 1, 1), Axis(10, 1, 1), 4, 18);
    for (size_t i = 0; i < p.x.size(); i += 5) p.x[i] = i % 2 == 0 ? 1.5e38f : -1.5e38f;
    for (float& w : p.filter) w *= 0.125f;
    ExpectRight(p);
    for (float& w : p.filter) w *= 8;  // some sums are infinite now
    const std::vector<double> expected = Expected(p);
    EXPECT_TRUE(
        std::any_of(expected.begin(), expected.end(), [](double v) { return v == INFINITY; }));
    ExpectRight(p);
  }
}

TEST(WinogradTest, WeightsThatAreNotTransformed) {
  const Problem p = Make(4, 1, Axis(8, 1, 1), Axis(8, 1, 1), 3, 5);
  for (const float strange : {INFINITY, -INFINITY, NAN, 1e35f, 0.0f}) {
    for (const int tile : {2, 4}) {
      std::vector<float> filter = p.filter;
      filter[17] = strange;
      if (strange == 0) {
        for (float& w : filter) w *= 1e-33f;
      }
      const Winograd winograd(p.g, tile);
      std::vector<float> packed(static_cast<size_t>(winograd.filter().packed_bytes() + 3) / 4, NAN);
      winograd.filter().Pack({}, filter.data(), true, std::as_writable_bytes(std::span(packed)));
      const float* panels = WinogradFilter::DirectPanels(packed.data());
      ASSERT_NE(panels, nullptr) << strange;
      std::vector<float> expected(static_cast<size_t>(PackedElements(27, 5)));
      Pack({}, filter.data(), 5, 1, 27, 5, expected.data());
      EXPECT_EQ(std::memcmp(panels, expected.data(), expected.size() * sizeof(float)), 0);
    }
  }
}

// Filters are packed before sizes are known, so sizes must not matter.
TEST(WinogradTest, WhichConvolutions) {
  const ConvAttrs plain;
  EXPECT_EQ(Winograd::TileFor(plain, {3, 3, 64, 64}), 4);
  EXPECT_EQ(Winograd::TileFor(plain, {3, 3, 128, 96}), 4);
  EXPECT_EQ(Winograd::TileFor(plain, {3, 3, 256, 256}), 2);
  EXPECT_EQ(Winograd::TileFor(plain, {3, 3, 128, 192}), 2);
  EXPECT_EQ(Winograd::TileFor(plain, {3, 3, 512, 512}), 2);
  for (const Shape& filter :
       {Shape{3, 3, 3, 64}, Shape{3, 3, 512, 640}, Shape{3, 3, 64, 256}, Shape{5, 5, 64, 64},
        Shape{3, 1, 64, 64}, Shape{3, 64, 64}, Shape{3, 3, 3, 64, 64}}) {
    EXPECT_EQ(Winograd::TileFor(plain, filter), 0) << filter;
  }
  ConvAttrs same = plain;
  same.strides = same.dilations = {1, 1};
  same.auto_pad = "same_upper";
  EXPECT_EQ(Winograd::TileFor(same, {3, 3, 64, 64}), 4);
  for (auto change : {+[](ConvAttrs& a) {
                        a.strides = {1, 2};
                      },
                      +[](ConvAttrs& a) {
                        a.dilations = {2, 1};
                      },
                      +[](ConvAttrs& a) { a.groups = 2; }}) {
    ConvAttrs other = plain;
    change(other);
    EXPECT_EQ(Winograd::TileFor(other, {3, 3, 64, 64}), 0);
  }
}

TEST(WinogradTest, SmallImagesKeepTheirPanels) {
  const Shape small{3, 3, 64, 64}, large{3, 3, 512, 512};
  const PartialShape open({Dim(), Dim(), Dim(), Dim(64)});
  EXPECT_TRUE(Winograd::Pays(small, Shape{1, 14, 14, 64}));
  EXPECT_FALSE(Winograd::Pays(small, Shape{8, 7, 7, 64}));
  EXPECT_TRUE(Winograd::Pays(small, PartialShape({Dim(), Dim(14), Dim(14), Dim(64)})));
  EXPECT_FALSE(Winograd::Pays(small, PartialShape({Dim(), Dim(7), Dim(14), Dim(64)})));
  EXPECT_TRUE(Winograd::Pays(small, open));
  EXPECT_FALSE(Winograd::Pays(large, open));
  EXPECT_FALSE(Winograd::Pays(large, PartialShape()));
  EXPECT_TRUE(Winograd::Pays(large, Shape{1, 28, 28, 512}));

  const WinogradFilter filter(4, 3, 5);
  EXPECT_LT(filter.packed_bytes(false), filter.packed_bytes(true));
  const std::vector<float> weights = Numbers(9 * 15, 1);
  std::vector<float> packed(static_cast<size_t>(filter.packed_bytes(false) / 4), NAN);
  filter.Pack({}, weights.data(), false, std::as_writable_bytes(std::span(packed)));
  const float* panels = WinogradFilter::DirectPanels(packed.data());
  ASSERT_NE(panels, nullptr);
  std::vector<float> expected(static_cast<size_t>(PackedElements(27, 5)));
  Pack({}, weights.data(), 5, 1, 27, 5, expected.data());
  EXPECT_EQ(std::memcmp(panels, expected.data(), expected.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace oncilla::cpu
