// Numbers of any type, those of few bits among them, read and written as doubles or 64-bit
// integers. The bytes may lie anywhere.
#pragma once

#include <cstddef>
#include <span>

#include "engine/base/small_float.h"
#include "engine/tensor/dtype.h"

namespace oncilla {

// How numbers are cut to floats of 8 and 4 bits.
struct SmallRounding {
  bool saturate = true;
  PowerRounding powers = PowerRounding::kUp;  // of f8e8m0
};

// What the functions below take: every type but strings and complex numbers.
bool HoldsNumbers(DType dtype);
// True for integers of all widths and bool: what LoadInts takes.
bool HoldsInts(DType dtype);

// The elements from `begin` on. Integers of 64 bits are rounded.
void LoadNumbers(DType dtype, const std::byte* bytes, int64_t begin, std::span<double> to);
// The same of integers, exactly; u64 wraps around.
void LoadInts(DType dtype, const std::byte* bytes, int64_t begin, std::span<int64_t> to);
// Integers are cut towards zero and to the type's range; those of fewer than 8 bits wrap around
// instead, as NumPy has it. A NaN is 0 there.
//
// Elements of fewer than 8 bits share bytes, and are written in order: those behind the last one in
// its byte become zero. Who writes in parts must begin each at a whole byte.
void StoreNumbers(DType dtype, std::span<const double> from, const SmallRounding& rounding,
                  std::byte* bytes, int64_t begin);
// Integers wrap around.
void StoreInts(DType dtype, std::span<const int64_t> from, const SmallRounding& rounding,
               std::byte* bytes, int64_t begin);

// A tensor of n packed elements as a byte each, which holds the element's bits, and back. Bits that
// are left over are written as zero.
void UnpackCodes(DType packed, const std::byte* from, int64_t n, uint8_t* to);
void PackCodes(DType packed, const uint8_t* from, int64_t n, std::byte* to);

}  // namespace oncilla
