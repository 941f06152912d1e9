// float16 and bfloat16 in vectors, on every instruction set of this machine: each 16-bit pattern
// widened, and floats rounded as on the host, to nearest even, for any length.
#include <bit>
#include <cmath>

#include "backends/cpu/fast/element_lanes.h"
#include "engine/base/half.h"
#include "tests/unit/support/instruction_sets.h"

namespace oncilla::cpu {
namespace {

template <class T>
void WidensEveryPattern(DType dtype) {
  std::vector<uint16_t> bits(65536 + 5);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(bits.size());
  ToFloats(dtype, bits.data(), static_cast<int64_t>(bits.size()), wide.data());
  for (size_t i = 0; i < bits.size(); ++i) {
    T expected;
    expected.bits = bits[i];
    const float value = expected;
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(value)) << i;
    }
  }
}

template <class T>
void CutsAsTheHost(DType dtype) {
  // Every exponent with mantissas around ties, then odd lengths.
  std::vector<float> wide;
  for (uint32_t high = 0; high < 65536; high += 7) {
    for (const uint32_t low :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      wide.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  for (const size_t n : {wide.size(), size_t{1}, size_t{3}, size_t{7}, size_t{17}, size_t{31}}) {
    std::vector<uint16_t> bits(n + 1, 0xabcd);
    FromFloats(wide.data() + 40000, static_cast<int64_t>(std::min(n, wide.size() - 40000)), dtype,
               bits.data());
    for (size_t i = 0; i < std::min(n, wide.size() - 40000); ++i) {
      const float value = wide[40000 + i];
      T actual;
      actual.bits = bits[i];
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(actual))) << i;
      } else {
        ASSERT_EQ(bits[i], T(value).bits) << value;
      }
    }
    ASSERT_EQ(bits[n], 0xabcd);  // nothing behind is touched
  }
  std::vector<uint16_t> bits(40000);
  FromFloats(wide.data(), 40000, dtype, bits.data());
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(wide[i])) continue;
    ASSERT_EQ(bits[i], T(wide[i]).bits) << wide[i];
  }
}

TEST(NarrowLanes, WidenEveryPatternOnEveryInstructionSet) {
  ForInstructionSets([] {
    WidensEveryPattern<Half>(DType::kF16);
    WidensEveryPattern<BFloat16>(DType::kBF16);
  });
}

TEST(NarrowLanes, CutToTheNearestOnEveryInstructionSet) {
  ForInstructionSets([] {
    CutsAsTheHost<Half>(DType::kF16);
    CutsAsTheHost<BFloat16>(DType::kBF16);
  });
}

}  // namespace
}  // namespace oncilla::cpu
