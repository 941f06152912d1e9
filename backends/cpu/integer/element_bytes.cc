#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/element_bytes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/element_bytes.h"

#include <cmath>

#include "backends/cpu/integer/requantize.inl.h"
#include "engine/tensor/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE void ReadAll(const T* from, int64_t n, const ByteScale& s, float* to) {
  constexpr Floats d;
  constexpr Ints ints;
  constexpr hn::Rebind<T, Floats> narrow;
  const Vector zero = hn::Set(d, s.zero), scale = hn::Set(d, s.scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector x = hn::ConvertTo(d, hn::PromoteTo(ints, hn::LoadU(narrow, from + i)));
    hn::StoreU(hn::Mul(hn::Sub(x, zero), scale), d, to + i);
  }
  for (; i < n; ++i) to[i] = (static_cast<float>(from[i]) - s.zero) * s.scale;
}

// The integers of a vector of real numbers: x / scale, rounded to the nearest, ties to even, plus
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
        moved_by_(hn::Set(Ints(), static_cast<int32_t>(s.zero) - kMagicBits)),
        least_int_(hn::Set(Ints(), static_cast<int32_t>(s.least))),
        most_int_(hn::Set(Ints(), static_cast<int32_t>(s.most))),
        // Where the reciprocal is infinite or no normal number, nothing is close.
        close_(hn::Set(Floats(), std::isnormal(1 / s.scale) ? 0.5F - kFar : -1.0F)) {}

  HWY_INLINE IntVector operator()(Vector x) const {
    if constexpr (sizeof(T) == 1) {
      // A product with the reciprocal is at most two units of its last place away from the
      // quotient, so that both are rounded to the same integer unless it lies close to a tie. That
      // is seldom so, and a division of whole vectors takes longer than all else here.
      const Vector about = hn::Mul(x, reciprocal_);
      const Vector shifted = hn::Add(about, hn::Set(Floats(), kMagic));
      const Vector rest = hn::Sub(about, hn::Sub(shifted, hn::Set(Floats(), kMagic)));
      // NaN is not close either.
      if (HWY_LIKELY(hn::AllTrue(Floats(), hn::Le(hn::Abs(rest), close_)))) {
        // What is too large for kMagic stays large; a negative sum would wrap around.
        const Vector positive = hn::Max(shifted, hn::Zero(Floats()));
        const auto moved = hn::Add(hn::BitCast(Ints(), positive), moved_by_);
        return hn::Min(hn::Max(moved, least_int_), most_int_);
      }
    }
    const Vector steps = hn::Add(hn::Round(hn::Div(x, scale_)), zero_);
    const Vector bounded = hn::Min(hn::Max(steps, least_), most_);
    return hn::ConvertTo(Ints(), hn::IfThenElseZero(hn::Eq(steps, steps), bounded));
  }

 private:
  // Added to a float below 2^22 it leaves the nearest integer, ties to even, in the lowest bits.
  static constexpr float kMagic = 12582912.0F;  // 3 * 2^22
  static constexpr int32_t kMagicBits = 0x4B400000;
  // Two units of the last place of numbers below 2^9; those above are cut to the bounds.
  static constexpr float kFar = 0x1p-14F;

  const Vector scale_, reciprocal_, zero_, least_, most_;
  const IntVector moved_by_, least_int_, most_int_;
  const Vector close_;
};

template <class T>
HWY_INLINE void WriteAll(const float* from, int64_t n, const ByteScale& s, T* to) {
  constexpr Floats d;
  constexpr hn::Rebind<T, Floats> narrow;
  const ScaledInts<T> ints(s);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(Narrowed<T>(ints(hn::LoadU(d, from + i))), narrow, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<T>(hn::GetLane(ints(hn::Set(d, from[i]))));
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

}  // namespace oncilla::cpu
#endif
