// Tiles of products of bfloat16 with the instruction that multiplies and adds two of them in one
// step: AVX-512 BF16. This version of Highway does not support it.
//
// A step is two fused multiplications of float, the second number of each pair first, whose
// products are exact (8 and 8 binary digits): bit-identical to PairStep in float. Unlike other code
// it treats numbers below 2^-126 as zero, and stores none. Rounding is to the nearest, ties to
// even, regardless of the thread's rounding mode. Infinities and NaN are preserved.
#pragma once

#include <cmath>
#include <cstdint>

#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {

// A tile of at most 14 rows and a panel of 32 columns.
struct PairTile {
  const BFloat16* a = nullptr;
  int64_t row_step = 0;           // elements from one row of A to the next
  const int64_t* taps = nullptr;  // where the runs of a row begin
  int64_t tap_count = 1;
  int64_t pairs = 0;                   // of a run
  const BFloat16Pair* b = nullptr;     // 32 for each pair of a row
  int64_t columns = 0;                 // from 1 to 32; others are not read or written, except in B
  const BFloat16* bias = nullptr;      // one per column, or null
  const BFloat16* residual = nullptr;  // laid out like C, or null
  BFloat16* c = nullptr;
  int64_t c_step = 0;
  float low = 0, high = 0;  // bounds of results
  // Sums without rounding, in rows of 32: whether the existing ones are added to, and whether they
  // are stored instead of results. Bias, residual and bounds then apply only to the first or last
  // of such calls.
  float* sums = nullptr;
  bool from_sums = false, to_sums = false;
};

struct PairTiles {
  static constexpr int kRows = 14, kColumns = 32;
  void (*run)(int rows, const PairTile&) = nullptr;
  // n numbers rounded to the nearest, ties to even; those below 2^-126 become zero.
  void (*round)(const float* from, int64_t n, BFloat16* to) = nullptr;
};
// Null if this processor does not have these instructions or they may not be used.
const PairTiles* PairTilesHere();

// One step of a sum in portable code.
inline float PairStep(float sum, BFloat16Pair x, BFloat16Pair y) {
  const auto flushed = [](float f) {
    return std::fpclassify(f) == FP_SUBNORMAL ? std::copysign(0.0f, f) : f;
  };
  const auto add = [&](float to, BFloat16 p, BFloat16 q) {
    return flushed(std::fma(flushed(static_cast<float>(p)), flushed(static_cast<float>(q)), to));
  };
  return add(add(flushed(sum), x.second, y.second), x.first, y.first);
}

}  // namespace oncilla::cpu
