// Elementwise conversions between quantised bytes and floats, and sums of bytes, once per
// instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/element_bytes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/element_bytes.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/integer/requantize.inl.h"
#include "engine/tensor/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// Added to a float below 2^22 it leaves the nearest integer in the lowest bits.
constexpr float kMagic = 12582912.0F;  // 3 * 2^22
constexpr int32_t kMagicBits = 0x4B400000;

// The real numbers that a vector of integers represents.
template <class T>
class ScaledFloats {
 public:
  explicit ScaledFloats(const ByteScale& s)
      : zero_(hn::Set(Floats(), s.zero)), scale_(hn::Set(Floats(), s.scale)) {}

  HWY_INLINE Vector operator()(const T* from) const {
    constexpr hn::Rebind<T, Floats> narrow;
    const Vector x = hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), hn::LoadU(narrow, from)));
    return hn::Mul(hn::Sub(x, zero_), scale_);
  }

 private:
  const Vector zero_, scale_;
};

HWY_INLINE float ScaledFloat(float x, const ByteScale& s) { return (x - s.zero) * s.scale; }

template <class T>
HWY_INLINE void ReadAll(const T* from, int64_t n, const ByteScale& s, float* to) {
  const ScaledFloats<T> floats(s);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(floats(from + i), Floats(), to + i);
  for (; i < n; ++i) to[i] = ScaledFloat(from[i], s);
}

// Quantises a vector of real numbers: x / scale, rounded to the nearest integer, ties to even, plus
// zero.
template <class T>
class ScaledInts {
 public:
  explicit ScaledInts(const ByteScale& s)
      : scale_(hn::Set(Floats(), s.scale)),
        reciprocal_(hn::Set(Floats(), 1 / s.scale)),
        zero_(hn::Set(Floats(), s.zero)),
        least_(hn::Set(Floats(), s.least)),
        most_(hn::Set(Floats(), s.most)),
        magic_(hn::Set(Floats(), kMagic + s.zero)),
        least_shifted_(hn::Set(Floats(), kMagic + s.least)),
        most_shifted_(hn::Set(Floats(), kMagic + s.most)),
        // If the reciprocal is not a normal number, or the zero point not an integer, every number
        // is computed by division.
        close_(hn::Set(Floats(), std::isnormal(1 / s.scale) && IsSmallInteger(s.zero) ? 0.5F - kFar
                                                                                      : -1.0F)) {}

  HWY_INLINE IntVector operator()(Vector x) const {
    if constexpr (sizeof(T) == 1) {
      // The product with the reciprocal is at most two units in the last place away from the
      // quotient, so both are rounded to the same integer unless the number is close to a tie. That
      // is rare, and a division of whole vectors takes longer than everything else here.
      const Vector about = hn::Mul(x, reciprocal_);
      const Vector shifted = hn::Add(about, magic_);
      const Vector rest = hn::Sub(about, hn::Sub(shifted, magic_));
      // NaN does not count as close enough, either.
      if (HWY_LIKELY(hn::AllTrue(Floats(), hn::Le(hn::Abs(rest), close_)))) {
        const Vector bounded = hn::Min(hn::Max(shifted, least_shifted_), most_shifted_);
        return hn::Sub(hn::BitCast(Ints(), bounded), hn::Set(Ints(), kMagicBits));
      }
    }
    const Vector steps = hn::Add(hn::Round(hn::Div(x, scale_)), zero_);
    const Vector bounded = hn::Min(hn::Max(steps, least_), most_);
    return hn::ConvertTo(Ints(), hn::IfThenElseZero(hn::Eq(steps, steps), bounded));
  }

 private:
  static bool IsSmallInteger(float x) { return std::abs(x) <= 0x1p16F && x == std::floor(x); }
  // Two units in the last place of numbers below 2^9; larger numbers are clipped anyway.
  static constexpr float kFar = 0x1p-14F;

  const Vector scale_, reciprocal_, zero_, least_, most_;
  const Vector magic_, least_shifted_, most_shifted_;
  const Vector close_;
};

// The integers nearest to x * scale + zero.
class MultipliedInts {
 public:
  explicit MultipliedInts(const ByteScale& s)
      : scale_(hn::Set(Floats(), s.scale)),
        zero_(hn::Set(Floats(), s.zero)),
        least_(hn::Set(Floats(), kMagic + s.least)),
        most_(hn::Set(Floats(), kMagic + s.most)) {}

  HWY_INLINE IntVector operator()(Vector x) const {
    const Vector steps = hn::Add(hn::Mul(x, scale_), zero_);
    const Vector shifted = hn::Add(steps, hn::Set(Floats(), kMagic));
    const Vector bounded = hn::Min(hn::Max(shifted, least_), most_);
    const IntVector whole = hn::Sub(hn::BitCast(Ints(), bounded), hn::Set(Ints(), kMagicBits));
    const auto number = hn::RebindMask(Ints(), hn::Eq(steps, steps));
    return hn::IfThenElseZero(number, whole);
  }

 private:
  const Vector scale_, zero_, least_, most_;
};

template <class T, class IntsOf>
HWY_INLINE void WriteAs(const IntsOf& ints, const float* from, int64_t n, T* to) {
  constexpr Floats d;
  constexpr hn::Rebind<T, Floats> narrow;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(Narrowed<T>(ints(hn::LoadU(d, from + i))), narrow, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<T>(hn::GetLane(ints(hn::Set(d, from[i]))));
}

template <class T>
HWY_INLINE void WriteAll(const float* from, int64_t n, const ByteScale& s, T* to) {
  if (s.multiplies) {
    WriteAs(MultipliedInts(s), from, n, to);
  } else {
    WriteAs(ScaledInts<T>(s), from, n, to);
  }
}

// x * factor + y, rounded once. For a byte x, the product is exact in double.
HWY_INLINE Vector FusedSum(Vector x, Vector factor, Vector y) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(x, factor, y);
#else
  HWY_ALIGN float a[kLanes], b[kLanes], c[kLanes];
  hn::Store(x, Floats(), a);
  hn::Store(factor, Floats(), b);
  hn::Store(y, Floats(), c);
  for (int i = 0; i < kLanes; ++i) a[i] = std::fma(a[i], b[i], c[i]);
  return hn::Load(Floats(), a);
#endif
}

template <class T, class Y>
HWY_INLINE void AddAll(const ByteSum& sum, const T* a, const T* b, int64_t n, Y* y) {
  constexpr Floats d;
  constexpr hn::Rebind<T, Floats> narrow;
  constexpr hn::Rebind<Y, Floats> result;
  const Vector a_factor = hn::Set(d, sum.a_factor), b_factor = hn::Set(d, sum.b_factor);
  const Vector offset = hn::Set(d, sum.offset), magic = hn::Set(d, kMagic);
  const Vector least = hn::Set(d, kMagic + sum.least), most = hn::Set(d, kMagic + sum.most);
  const auto real = [&](const T* x) HWY_ATTR {
    return hn::ConvertTo(d, hn::PromoteTo(Ints(), hn::LoadU(narrow, x)));
  };
  const auto add = [&](const T* p, const T* q, Y* to) HWY_ATTR {
    const Vector steps = FusedSum(real(p), a_factor, FusedSum(real(q), b_factor, offset));
    const Vector bounded = hn::Min(hn::Max(hn::Add(steps, magic), least), most);
    const IntVector whole = hn::Sub(hn::BitCast(Ints(), bounded), hn::Set(Ints(), kMagicBits));
    hn::StoreU(Narrowed<Y>(whole), result, to);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) add(a + i, b + i, y + i);
  if (i == n) return;
  T tail[2][kLanes] = {};
  Y last[kLanes];
  std::copy_n(a + i, n - i, tail[0]);
  std::copy_n(b + i, n - i, tail[1]);
  add(tail[0], tail[1], last);
  std::copy_n(last, n - i, y + i);
}

void AddU8ToI8(const ByteSum& sum, const uint8_t* a, const uint8_t* b, int64_t n, int8_t* y) {
  AddAll(sum, a, b, n, y);
}
void AddU8(const ByteSum& sum, const uint8_t* a, const uint8_t* b, int64_t n, uint8_t* y) {
  AddAll(sum, a, b, n, y);
}
void AddI8(const ByteSum& sum, const int8_t* a, const int8_t* b, int64_t n, int8_t* y) {
  AddAll(sum, a, b, n, y);
}
void ReadU8(const uint8_t* x, int64_t n, const ByteScale& s, float* y) { ReadAll(x, n, s, y); }
void ReadI8(const int8_t* x, int64_t n, const ByteScale& s, float* y) { ReadAll(x, n, s, y); }
void ReadU16(const uint16_t* x, int64_t n, const ByteScale& s, float* y) { ReadAll(x, n, s, y); }
void ReadI16(const int16_t* x, int64_t n, const ByteScale& s, float* y) { ReadAll(x, n, s, y); }
void WriteU8(const float* x, int64_t n, const ByteScale& s, uint8_t* y) { WriteAll(x, n, s, y); }
void WriteI8(const float* x, int64_t n, const ByteScale& s, int8_t* y) { WriteAll(x, n, s, y); }
void WriteU16(const float* x, int64_t n, const ByteScale& s, uint16_t* y) { WriteAll(x, n, s, y); }
void WriteI16(const float* x, int64_t n, const ByteScale& s, int16_t* y) { WriteAll(x, n, s, y); }

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(AddU8);
HWY_EXPORT(AddU8ToI8);
HWY_EXPORT(AddI8);
HWY_EXPORT(ReadU8);
HWY_EXPORT(ReadI8);
HWY_EXPORT(ReadU16);
HWY_EXPORT(ReadI16);
HWY_EXPORT(WriteU8);
HWY_EXPORT(WriteI8);
HWY_EXPORT(WriteU16);
HWY_EXPORT(WriteI16);

bool HasByteScale(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kU16 || dtype == DType::kI16;
}

void FromScaled(DType dtype, const void* from, int64_t n, const ByteScale& scale, float* to) {
  if (dtype == DType::kU8) {
    HWY_DYNAMIC_DISPATCH(ReadU8)(static_cast<const uint8_t*>(from), n, scale, to);
  } else if (dtype == DType::kI8) {
    HWY_DYNAMIC_DISPATCH(ReadI8)(static_cast<const int8_t*>(from), n, scale, to);
  } else if (dtype == DType::kU16) {
    HWY_DYNAMIC_DISPATCH(ReadU16)(static_cast<const uint16_t*>(from), n, scale, to);
  } else {
    HWY_DYNAMIC_DISPATCH(ReadI16)(static_cast<const int16_t*>(from), n, scale, to);
  }
}

void ToScaled(const float* from, int64_t n, const ByteScale& scale, DType dtype, void* to) {
  if (dtype == DType::kU8) {
    HWY_DYNAMIC_DISPATCH(WriteU8)(from, n, scale, static_cast<uint8_t*>(to));
  } else if (dtype == DType::kI8) {
    HWY_DYNAMIC_DISPATCH(WriteI8)(from, n, scale, static_cast<int8_t*>(to));
  } else if (dtype == DType::kU16) {
    HWY_DYNAMIC_DISPATCH(WriteU16)(from, n, scale, static_cast<uint16_t*>(to));
  } else {
    HWY_DYNAMIC_DISPATCH(WriteI16)(from, n, scale, static_cast<int16_t*>(to));
  }
}

void AddBytes(const ByteSum& sum, const std::byte* a, const std::byte* b, int64_t n, std::byte* y) {
  const auto run =
      [&]<class T, class Y>(void (*add)(const ByteSum&, const T*, const T*, int64_t, Y*)) {
        add(sum, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), n,
            reinterpret_cast<Y*>(y));
      };
  if (sum.dtype == DType::kI8) {
    run(HWY_DYNAMIC_DISPATCH(AddI8));
  } else if (sum.to == DType::kI8) {
    run(HWY_DYNAMIC_DISPATCH(AddU8ToI8));
  } else {
    run(HWY_DYNAMIC_DISPATCH(AddU8));
  }
}

}  // namespace oncilla::cpu
#endif
