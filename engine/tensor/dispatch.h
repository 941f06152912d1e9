// DispatchDType: calls a template by a dtype that is known at run time only.
#pragma once

#include <cstdint>

#include "engine/base/half.h"
#include "engine/tensor/dtype.h"

namespace oncilla {

template <class T>
struct TypeTag {
  using type = T;
};

// Calls fn(TypeTag<T>{}) with the C++ type of `dtype` (Half and BFloat16 for the 16-bit floats).
// Returns false, without a call, for strings, kInvalid and types that only store numbers.
template <class F>
bool DispatchDType(DType dtype, F&& fn) {
  switch (dtype) {
    case DType::kF32:
      fn(TypeTag<float>{});
      return true;
    case DType::kF64:
      fn(TypeTag<double>{});
      return true;
    case DType::kF16:
      fn(TypeTag<Half>{});
      return true;
    case DType::kBF16:
      fn(TypeTag<BFloat16>{});
      return true;
    case DType::kI8:
      fn(TypeTag<int8_t>{});
      return true;
    case DType::kI16:
      fn(TypeTag<int16_t>{});
      return true;
    case DType::kI32:
      fn(TypeTag<int32_t>{});
      return true;
    case DType::kI64:
      fn(TypeTag<int64_t>{});
      return true;
    case DType::kU8:
      fn(TypeTag<uint8_t>{});
      return true;
    case DType::kU16:
      fn(TypeTag<uint16_t>{});
      return true;
    case DType::kU32:
      fn(TypeTag<uint32_t>{});
      return true;
    case DType::kU64:
      fn(TypeTag<uint64_t>{});
      return true;
    case DType::kBool:
      fn(TypeTag<bool>{});
      return true;
    default:
      return false;
  }
}

// The dtype of a C++ type.
template <class T>
inline constexpr DType kDTypeOf = DType::kInvalid;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kF16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kI16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kU8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kU16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kU32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kU64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

}  // namespace oncilla
