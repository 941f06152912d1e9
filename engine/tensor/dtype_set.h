// Sets of dtypes: which ones a kernel takes.
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

}  // namespace oncilla
