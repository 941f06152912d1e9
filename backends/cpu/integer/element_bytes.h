// Quantised numbers at the ends of elementwise programs: read as the real numbers they stand for,
// and written as such, in one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace oncilla::cpu {

// An integer q stands for (q - zero) * scale, both steps rounded as floats are.
struct ByteScale {
  float zero = 0, scale = 1;
  // The bounds of an integer that is written.
  float least = 0, most = 0;
};
// u8, i8, u16 and i16.
bool HasByteScale(DType dtype);
// n real numbers.
void FromScaled(DType dtype, const void* from, int64_t n, const ByteScale& scale, float* to);
// Their integers: x / scale, rounded, plus zero, cut to the bounds. NaN is 0.
void ToScaled(const float* from, int64_t n, const ByteScale& scale, DType dtype, void* to);
// y = a + b, all of them such integers of one type of 8 bits; the same as with FromScaled and
// ToScaled.
struct ScaledSum {
  DType dtype;
  ByteScale a, b, y;
};
void AddScaled(const ScaledSum& sum, const std::byte* a, const std::byte* b, int64_t n,
               std::byte* y);

}  // namespace oncilla::cpu
