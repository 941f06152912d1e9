// Quantised numbers as inputs and outputs of elementwise programs: converted from and to the real
// numbers that they represent, in one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace oncilla::cpu {

// An integer q represents (q - zero) * scale, rounded to float after both operations.
struct ByteScale {
  float zero = 0, scale = 1;
  // The bounds of an integer output.
  float least = 0, most = 0;
  // Outputs are x * scale + zero, rounded to the nearest integer after both operations.
  bool multiplies = false;
};
// u8, i8, u16 and i16.
bool HasByteScale(DType dtype);
// Converts n integers to real numbers.
void FromScaled(DType dtype, const void* from, int64_t n, const ByteScale& scale, float* to);
// Converts n real numbers to integers: x / scale, rounded, plus zero, clipped to the bounds, or as
// `multiplies` says. NaN becomes 0.
void ToScaled(const float* from, int64_t n, const ByteScale& scale, DType dtype, void* to);
// y = a * a_factor + (b * b_factor + offset) of integers of 8 bits: both sums rounded once, as
// floats, the result to the nearest integer within the bounds, ties to even. a and b are of one
// type, which is also that of y, or are u8 where y is i8. The numbers are finite, and so small that
// no sum is infinite.
struct ByteSum {
  DType dtype, to;  // of a and b, and of y
  float a_factor, b_factor, offset;
  float least, most;
};
void AddBytes(const ByteSum& sum, const std::byte* a, const std::byte* b, int64_t n, std::byte* y);

}  // namespace oncilla::cpu
