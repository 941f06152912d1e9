// Reads and writes numbers of any type, packed ones included, as doubles or 64-bit integers. The
// bytes may be unaligned.
#pragma once

#include <cstddef>
#include <span>

#include "engine/base/small_float.h"
#include "engine/tensor/dtype.h"

namespace oncilla {

// How numbers are rounded to floats of 8 and 4 bits.
struct SmallRounding {
  bool saturate = true;
  PowerRounding powers = PowerRounding::kUp;  // of f8e8m0
};

// What the functions below accept: every type but strings and complex numbers.
bool HoldsNumbers(DType dtype);
// True for integers of all widths and bool: what LoadInts takes.
bool HoldsInts(DType dtype);

// Reads the elements from `begin` on. Integers of 64 bits are rounded to doubles.
void LoadNumbers(DType dtype, const std::byte* bytes, int64_t begin, std::span<double> to);
// The same for integers, exactly; u64 wraps around.
void LoadInts(DType dtype, const std::byte* bytes, int64_t begin, std::span<int64_t> to);
// Writes elements from `begin` on. For integers, values are truncated towards zero and saturated to
// the type's range; types of fewer than 8 bits wrap around instead, as in NumPy. A NaN becomes 0.
//
// Elements of fewer than 8 bits share bytes, and are written in order: writing one clears the later
// ones in its byte. A caller that writes in parts must begin each part at a whole byte.
void StoreNumbers(DType dtype, std::span<const double> from, const SmallRounding& rounding,
                  std::byte* bytes, int64_t begin);
// The same for integers, which wrap around.
void StoreInts(DType dtype, std::span<const int64_t> from, const SmallRounding& rounding,
               std::byte* bytes, int64_t begin);

// Converts n packed elements to one byte each, which holds the element's bits, and back. Unused
// bits are written as zero.
void UnpackCodes(DType packed, const std::byte* from, int64_t n, uint8_t* to);
void PackCodes(DType packed, const uint8_t* from, int64_t n, std::byte* to);
// Copies n packed elements from place `first` of one tensor to place `at` of another, which need
// not be whole bytes. The destination is written in order, as by StoreNumbers.
void CopyPacked(DType packed, const std::byte* from, int64_t first, int64_t n, std::byte* to,
                int64_t at);

}  // namespace oncilla
