// DType: the element types of the IR. Sizes are in bits, because int4 and float4 exist in models;
// bool is a byte, strings live on the host only.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace oncilla {

enum class DType : uint8_t {
  kInvalid,
  kF32,
  kF64,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kString,
};

// Every valid type, for loops over what a kernel claims.
inline constexpr DType kAllDTypes[] = {
    DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16,  DType::kI32,
    DType::kI64, DType::kU8,  DType::kU16, DType::kU32,  DType::kU64, DType::kBool, DType::kString};

// 0 for kInvalid and kString, whose elements have no fixed size.
int BitsOf(DType t);
inline int64_t BytesOf(DType t) { return BitsOf(t) / 8; }

// "f32", "bool", "string", ... as cases and printed graphs spell them.
std::string_view Name(DType t);
std::optional<DType> DTypeFromName(std::string_view name);

constexpr bool IsFloat(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kF16 || t == DType::kBF16;
}
constexpr bool IsSigned(DType t) {
  return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64;
}
constexpr bool IsUnsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
}
constexpr bool IsInteger(DType t) { return IsSigned(t) || IsUnsigned(t); }
constexpr bool IsNumber(DType t) { return IsFloat(t) || IsInteger(t); }

inline std::ostream& operator<<(std::ostream& out, DType t) { return out << Name(t); }

}  // namespace oncilla
