// Real numbers converted to integers of 8 and 16 bits, compared with division in C++, on every
// instruction set of this machine: at ties and next to them, where an error in a quotient's last
// bit gives another integer, and where quotients are out of an integer's range.
#include "backends/cpu/integer/element_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/unit/support/instruction_sets.h"

namespace oncilla::cpu {
namespace {

int Expected(float x, const ByteScale& s) {
  const float steps = std::nearbyint(x / s.scale) + s.zero;
  return std::isnan(steps) ? 0 : static_cast<int>(std::clamp(steps, s.least, s.most));
}

// Numbers near the ties between integers of a scale, and some that are far from any.
std::vector<float> NumbersFor(float scale, int most, std::mt19937& rng) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<float> numbers = {0.0F,  -0.0F,         kInf,   -kInf, kMax,
                                -kMax, std::nanf(""), 1e-45F, 1e30F};
  for (int i = 0; i < 40; ++i) {
    for (const float x : {std::ldexp(scale, i), std::ldexp(1.4F * scale, i)}) {
      numbers.insert(numbers.end(), {x, -x});
    }
  }
  std::uniform_int_distribution<int> steps(-most - 4, most + 4), ulps(-3, 3);
  for (int i = 0; i < 2000; ++i) {
    const float tie = (static_cast<float>(steps(rng)) + 0.5F) * scale;
    const auto bits = std::bit_cast<uint32_t>(tie) + static_cast<uint32_t>(ulps(rng));
    numbers.push_back(std::bit_cast<float>(bits));
  }
  return numbers;
}

template <class T>
void DividesAsTheLanguageDoes(DType dtype, float zero) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-20, 4);
  constexpr int kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  for (int round = 0; round < 300; ++round) {
    // Some scales have reciprocals, or quotients, that a float cannot represent.
    const float scales[] = {1e-40F, 1e-30F, 3e38F, -0.25F};
    const float scale = round < 4 ? scales[round] : std::ldexp(mantissa(rng), exponent(rng));
    const ByteScale s{zero, scale, static_cast<float>(kLeast), static_cast<float>(kMost)};
    const std::vector<float> x = NumbersFor(scale, kMost, rng);
    std::vector<T> y(x.size());
    ToScaled(x.data(), static_cast<int64_t>(x.size()), s, dtype, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(int{y[i]}, Expected(x[i], s)) << x[i] << " / " << scale << " + " << zero;
    }
  }
}

TEST(ElementBytes, QuotientsAreRoundedAsDivisionRounds) {
  ForInstructionSets([] {
    DividesAsTheLanguageDoes<uint8_t>(DType::kU8, 128);
    DividesAsTheLanguageDoes<uint8_t>(DType::kU8, 3.5F);
    DividesAsTheLanguageDoes<int8_t>(DType::kI8, std::nanf(""));
    DividesAsTheLanguageDoes<int8_t>(DType::kI8, -3);
    DividesAsTheLanguageDoes<uint16_t>(DType::kU16, 0);
    DividesAsTheLanguageDoes<int16_t>(DType::kI16, 5);
  });
}

template <class T>
void MultipliesInSteps(DType dtype) {
  constexpr float kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<float> x = {0, -0.0F, NAN, INFINITY, -INFINITY, 1e38F, -1e38F};
  for (int i = -300; i < 300; ++i) x.push_back(static_cast<float>(i) * 0.5F);
  for (const ByteScale& s : {ByteScale{3, 1, kLeast, kMost, true},
                             {0, 0.3F, kLeast, kMost, true},
                             {-5, 1e30F, 2, 100, true},
                             {0.5F, 1e-30F, kLeast, kMost, true}}) {
    std::vector<T> y(x.size());
    ToScaled(x.data(), std::ssize(x), s, dtype, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const float scaled = x[i] * s.scale, steps = scaled + s.zero;
      const float wanted =
          std::isnan(steps) ? 0 : std::clamp(std::nearbyint(steps), s.least, s.most);
      ASSERT_EQ(static_cast<float>(y[i]), wanted) << x[i] << " " << s.scale;
    }
  }
}

TEST(ElementBytes, ProductsAreRoundedAfterTheZeroPointIsAdded) {
  ForInstructionSets([] {
    MultipliesInSteps<uint8_t>(DType::kU8);
    MultipliesInSteps<int8_t>(DType::kI8);
    MultipliesInSteps<uint16_t>(DType::kU16);
    MultipliesInSteps<int16_t>(DType::kI16);
  });
}

// All pairs of bytes, with scales for which many sums are ties.
template <class T, class Y>
void AddsAsInSteps(DType dtype, DType to) {
  constexpr float kLeast = std::numeric_limits<Y>::min(), kMost = std::numeric_limits<Y>::max();
  std::vector<T> a, b;
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) {
      a.push_back(static_cast<T>(i));
      b.push_back(static_cast<T>(j));
    }
  }
  a.pop_back(), b.pop_back();  // a part of a vector is left
  const auto n = static_cast<int64_t>(a.size());
  const ByteSum sums[] = {
      {dtype, to, 0.5F, 0.25F, 5.5F, kLeast, kMost},
      {dtype, to, 1.0315298F, 0.89139736F, -103.40209F, kLeast, kMost},
      {dtype, to, 1.7528626F, 0.785612F, -268.188F, kLeast, kMost},  // ties but for roundings
      {dtype, to, -1.5F, 0, 3, 2, 100},
      {dtype, to, 1e29F, -1e29F, 0.5F, kLeast, kMost},
      {dtype, to, 1e-38F, 1e-38F, 1e-38F, kLeast, kMost},
  };
  for (const ByteSum& sum : sums) {
    std::vector<Y> y(a.size());
    AddBytes(sum, reinterpret_cast<const std::byte*>(a.data()),
             reinterpret_cast<const std::byte*>(b.data()), n,
             reinterpret_cast<std::byte*>(y.data()));
    for (size_t i = 0; i < y.size(); ++i) {
      const auto x = static_cast<float>(a[i]), other = static_cast<float>(b[i]);
      const float real = std::fma(x, sum.a_factor, std::fma(other, sum.b_factor, sum.offset));
      ASSERT_EQ(static_cast<float>(y[i]), std::clamp(std::nearbyint(real), sum.least, sum.most))
          << int{a[i]} << " " << int{b[i]};
    }
  }
}

TEST(ElementBytes, SumsAreRoundedOnceInEachStep) {
  ForInstructionSets([] {
    AddsAsInSteps<uint8_t, uint8_t>(DType::kU8, DType::kU8);
    AddsAsInSteps<int8_t, int8_t>(DType::kI8, DType::kI8);
    AddsAsInSteps<uint8_t, int8_t>(DType::kU8, DType::kI8);
  });
}

}  // namespace
}  // namespace oncilla::cpu
