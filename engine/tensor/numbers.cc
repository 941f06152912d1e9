// Numbers of any type are read and written as doubles and 64-bit integers.
#include "engine/tensor/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/tensor/dispatch.h"

namespace oncilla {
namespace {

// The byte, shift and mask of a packed element.
struct Place {
  int64_t byte;
  int shift, mask;
  Place(int bits, int64_t i)
      : byte(i * bits / 8), shift(static_cast<int>(i * bits % 8)), mask((1 << bits) - 1) {}
};

uint8_t CodeAt(int bits, const std::byte* bytes, int64_t i) {
  if (bits == 8) return static_cast<uint8_t>(bytes[i]);
  const Place at(bits, i);
  return static_cast<uint8_t>(static_cast<int>(bytes[at.byte]) >> at.shift & at.mask);
}

void SetCode(int bits, std::byte* bytes, int64_t i, int code) {
  if (bits == 8) {
    bytes[i] = static_cast<std::byte>(code);
    return;
  }
  const Place at(bits, i);
  // The higher bits of the byte belong to later elements, which have yet to be written, or are
  // padding.
  const int kept = static_cast<int>(bytes[at.byte]) & ((1 << at.shift) - 1);
  bytes[at.byte] = static_cast<std::byte>(kept | (code & at.mask) << at.shift);
}

const SmallFloatFormat* FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return &kE4M3FN;
    case DType::kF8E4M3FNUZ:
      return &kE4M3FNUZ;
    case DType::kF8E5M2:
      return &kE5M2;
    case DType::kF8E5M2FNUZ:
      return &kE5M2FNUZ;
    case DType::kF4E2M1:
      return &kE2M1;
    default:
      return nullptr;
  }
}

int IntegerOf(DType dtype, int code) {
  const bool is_signed = dtype == DType::kI4 || dtype == DType::kI2;
  const int bits = BitsOf(dtype);
  return is_signed && (code >> (bits - 1) & 1) != 0 ? code - (1 << bits) : code;
}

double NumberOf(DType dtype, uint8_t code) {
  if (IsSmallInteger(dtype)) return IntegerOf(dtype, code);
  if (dtype == DType::kF8E8M0) return FromE8M0(code);
  return FromSmallFloat(*FormatOf(dtype), code);
}

int CodeOf(DType dtype, double value, const SmallRounding& rounding) {
  if (IsSmallInteger(dtype)) {
    constexpr double kMost = 9.2e18;  // within int64
    if (!(std::abs(value) < kMost)) return 0;
    return static_cast<int>(static_cast<int64_t>(value) & 0xff);
  }
  if (dtype == DType::kF8E8M0) {
    return ToE8M0(static_cast<float>(value), rounding.saturate, rounding.powers);
  }
  return ToSmallFloat(*FormatOf(dtype), value, rounding.saturate);
}

bool IsSmall(DType dtype) { return IsSmallInteger(dtype) || IsSmallFloat(dtype); }

template <class T>
T CutTo(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    // As a double, the limit of a 64-bit type rounds up to a power of two, which itself does not
    // fit.
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

template <class To>
void Load(DType dtype, const std::byte* bytes, int64_t begin, std::span<To> to) {
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    const std::byte* from = bytes + begin * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < to.size(); ++i) {
      Stored value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, bool>) {
        to[i] = value != 0 ? 1 : 0;
      } else {
        to[i] = static_cast<To>(value);
      }
    }
  });
}

template <class From>
void Store(DType dtype, std::span<const From> from, std::byte* bytes, int64_t begin) {
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    std::byte* to = bytes + begin * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < from.size(); ++i) {
      T value;
      if constexpr (std::is_same_v<From, double>) {
        value = CutTo<T>(from[i]);
      } else if constexpr (std::is_same_v<T, bool>) {
        value = from[i] != 0;
      } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
        value = static_cast<T>(from[i]);
      } else {
        value = T(static_cast<float>(from[i]));
      }
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace

bool HoldsNumbers(DType dtype) {
  return dtype != DType::kInvalid && dtype != DType::kString && !IsComplex(dtype);
}

bool HoldsInts(DType dtype) {
  return IsInteger(dtype) || IsSmallInteger(dtype) || dtype == DType::kBool;
}

void LoadNumbers(DType dtype, const std::byte* bytes, int64_t begin, std::span<double> to) {
  if (!IsSmall(dtype)) return Load(dtype, bytes, begin, to);
  const int bits = BitsOf(dtype);
  double values[256];
  for (int code = 0; code < 1 << bits; ++code) {
    values[code] = NumberOf(dtype, static_cast<uint8_t>(code));
  }
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = values[CodeAt(bits, bytes, begin + static_cast<int64_t>(i))];
  }
}

void LoadInts(DType dtype, const std::byte* bytes, int64_t begin, std::span<int64_t> to) {
  if (!IsSmall(dtype)) return Load(dtype, bytes, begin, to);
  const int bits = BitsOf(dtype);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = IntegerOf(dtype, CodeAt(bits, bytes, begin + static_cast<int64_t>(i)));
  }
}

void StoreNumbers(DType dtype, std::span<const double> from, const SmallRounding& rounding,
                  std::byte* bytes, int64_t begin) {
  if (!IsSmall(dtype)) return Store(dtype, from, bytes, begin);
  const int bits = BitsOf(dtype);
  for (size_t i = 0; i < from.size(); ++i) {
    SetCode(bits, bytes, begin + static_cast<int64_t>(i), CodeOf(dtype, from[i], rounding));
  }
}

void StoreInts(DType dtype, std::span<const int64_t> from, const SmallRounding& rounding,
               std::byte* bytes, int64_t begin) {
  if (!IsSmall(dtype)) return Store(dtype, from, bytes, begin);
  const int bits = BitsOf(dtype);
  for (size_t i = 0; i < from.size(); ++i) {
    const int code = IsSmallInteger(dtype) ? static_cast<int>(from[i] & 0xff)
                                           : CodeOf(dtype, static_cast<double>(from[i]), rounding);
    SetCode(bits, bytes, begin + static_cast<int64_t>(i), code);
  }
}

void UnpackCodes(DType packed, const std::byte* from, int64_t n, uint8_t* to) {
  const int bits = BitsOf(packed);
  for (int64_t i = 0; i < n; ++i) to[i] = CodeAt(bits, from, i);
}

void PackCodes(DType packed, const uint8_t* from, int64_t n, std::byte* to) {
  const int bits = BitsOf(packed);
  std::fill_n(to, (n * bits + 7) / 8, std::byte{0});
  for (int64_t i = 0; i < n; ++i) SetCode(bits, to, i, from[i]);
}

void CopyPacked(DType packed, const std::byte* from, int64_t first, int64_t n, std::byte* to,
                int64_t at) {
  const int bits = BitsOf(packed);
  int64_t done = 0;
  if (first * bits % 8 == 0 && at * bits % 8 == 0) {  // whole bytes, but for the last elements
    const int64_t bytes = n * bits / 8;
    std::copy_n(from + first * bits / 8, bytes, to + at * bits / 8);
    done = bytes * 8 / bits;
  }
  for (int64_t i = done; i < n; ++i) SetCode(bits, to, at + i, CodeAt(bits, from, first + i));
}

}  // namespace oncilla
