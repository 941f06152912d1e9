// Sets of dtypes: the ones that a kernel accepts.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace oncilla {

using DTypeSet = uint32_t;
constexpr DTypeSet Set(DType t) { return 1u << static_cast<int>(t); }
inline constexpr DTypeSet kFloats =
    Set(DType::kF32) | Set(DType::kF64) | Set(DType::kF16) | Set(DType::kBF16);
inline constexpr DTypeSet kSignedInts =
    Set(DType::kI8) | Set(DType::kI16) | Set(DType::kI32) | Set(DType::kI64);
inline constexpr DTypeSet kUnsignedInts =
    Set(DType::kU8) | Set(DType::kU16) | Set(DType::kU32) | Set(DType::kU64);
inline constexpr DTypeSet kIntegers = kSignedInts | kUnsignedInts;
inline constexpr DTypeSet kNumbers = kFloats | kIntegers;
inline constexpr DTypeSet kBools = Set(DType::kBool);
inline constexpr DTypeSet kFixedSize = kNumbers | kBools;
inline constexpr DTypeSet kStrings = Set(DType::kString);
inline constexpr DTypeSet kAll = kFixedSize | kStrings;
// Types that only store numbers: accepted by ops that move elements or convert them.
inline constexpr DTypeSet kSmallInts =
    Set(DType::kI4) | Set(DType::kU4) | Set(DType::kI2) | Set(DType::kU2);
inline constexpr DTypeSet kSmallFloats = Set(DType::kF8E4M3FN) | Set(DType::kF8E4M3FNUZ) |
                                         Set(DType::kF8E5M2) | Set(DType::kF8E5M2FNUZ) |
                                         Set(DType::kF8E8M0) | Set(DType::kF4E2M1);
inline constexpr DTypeSet kSmall = kSmallInts | kSmallFloats;
inline constexpr DTypeSet kStorable = kAll | kSmall;

}  // namespace oncilla
