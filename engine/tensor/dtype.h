// DType: the element types of the IR. Sizes are in bits, because some types are smaller than a
// byte. A bool is a byte; strings exist on the host only.
//
// Types of fewer than 8 bits are packed: the first element is in the lowest bits of the first byte,
// and the unused bits of the last byte are zero, as in ONNX. Floats of 8 and 4 bits are those of
// ONNX and the OCP's formats (fn: no infinities; uz: no negative zero either; f8e8m0 holds powers
// of two). Complex numbers occur only in a model's inputs and outputs: within a graph they are
// pairs of floats.
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
  kI4,
  kU4,
  kI2,
  kU2,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kC64,   // two f32
  kC128,  // two f64
};

// Every valid type, for loops over what a kernel claims.
inline constexpr DType kAllDTypes[] = {
    DType::kF32,    DType::kF64,        DType::kF16,    DType::kBF16,     DType::kI8,
    DType::kI16,    DType::kI32,        DType::kI64,    DType::kU8,       DType::kU16,
    DType::kU32,    DType::kU64,        DType::kBool,   DType::kString,   DType::kI4,
    DType::kU4,     DType::kI2,         DType::kU2,     DType::kF8E4M3FN, DType::kF8E4M3FNUZ,
    DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kF8E8M0, DType::kF4E2M1,   DType::kC64,
    DType::kC128};

// 0 for kInvalid and kString, whose elements have no fixed size.
int BitsOf(DType t);
// 0 for packed types too: TensorDesc::bytes() is the size of a tensor of them.
inline int64_t BytesOf(DType t) { return BitsOf(t) / 8; }

// "f32", "bool", "string", ... as cases and printed graphs spell them.
std::string_view Name(DType t);
std::optional<DType> DTypeFromName(std::string_view name);

// Types that ops compute with. Those that only store numbers (below) count as neither floats nor
// integers: ops only cast, quantise and move them.
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

constexpr bool IsSmallInteger(DType t) { return t >= DType::kI4 && t <= DType::kU2; }
constexpr bool IsSmallFloat(DType t) { return t >= DType::kF8E4M3FN && t <= DType::kF4E2M1; }
// Types of fewer than 8 bits.
constexpr bool IsPacked(DType t) { return IsSmallInteger(t) || t == DType::kF4E2M1; }
constexpr bool IsComplex(DType t) { return t == DType::kC64 || t == DType::kC128; }

inline std::ostream& operator<<(std::ostream& out, DType t) { return out << Name(t); }

}  // namespace oncilla
