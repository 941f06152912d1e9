#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/element_bytes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/element_bytes.h"

#include "backends/cpu/vector.inl.h"
#include "engine/tensor/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE void ReadAll(const T* from, int64_t n, const ByteScale& s, float* to) {
  constexpr Floats d;
  constexpr hn::Rebind<int32_t, Floats> ints;
  constexpr hn::Rebind<T, Floats> narrow;
  const Vector zero = hn::Set(d, s.zero), scale = hn::Set(d, s.scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector x = hn::ConvertTo(d, hn::PromoteTo(ints, hn::LoadU(narrow, from + i)));
    hn::StoreU(hn::Mul(hn::Sub(x, zero), scale), d, to + i);
  }
  for (; i < n; ++i) to[i] = (static_cast<float>(from[i]) - s.zero) * s.scale;
}

template <class T>
HWY_INLINE void WriteAll(const float* from, int64_t n, const ByteScale& s, T* to) {
  constexpr Floats d;
  constexpr hn::Rebind<int32_t, Floats> ints;
  constexpr hn::Rebind<T, Floats> narrow;
  const Vector zero = hn::Set(d, s.zero), scale = hn::Set(d, s.scale);
  const Vector least = hn::Set(d, s.least), most = hn::Set(d, s.most);
  const auto cut = [&](Vector x) HWY_ATTR {
    const Vector steps = hn::Add(hn::Round(hn::Div(x, scale)), zero);
    const Vector bounded = hn::Min(hn::Max(steps, least), most);
    return hn::ConvertTo(ints, hn::IfThenElseZero(hn::Eq(steps, steps), bounded));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::DemoteTo(narrow, cut(hn::LoadU(d, from + i))), narrow, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<T>(hn::GetLane(cut(hn::Set(d, from[i]))));
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
