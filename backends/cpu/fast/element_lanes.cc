// Every row of the table as a loop over vectors of float, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/element_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/fast/element_lanes.h"

#include <cstring>

#include "backends/cpu/fast/element_lanes.inl.h"
#include "backends/cpu/fast/tiles.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

#ifndef ONCILLA_CPU_ELEMENT_LANES_ONCE
#define ONCILLA_CPU_ELEMENT_LANES_ONCE
namespace oncilla::cpu {
struct LaneFunctions {
  LaneFunction floats, bools;
};
}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

struct None {};

// The operand x of a row whose first operand is a condition is one; else lanes.
#define K(c) Lanes(static_cast<double>(c))
#define NONE \
  None {}
#define ELEMENTWISE(name, inputs, params, flags, storage, f, i, b)                        \
  struct name##Row {                                                                      \
    static constexpr int kInputs = inputs;                                                \
    static constexpr bool kCondition = (flags & kConditionFirst) != 0;                    \
    template <class X>                                                                    \
    static HWY_INLINE auto Floats([[maybe_unused]] X x, [[maybe_unused]] Lanes y,         \
                                  [[maybe_unused]] Lanes z, [[maybe_unused]] Lanes alpha, \
                                  [[maybe_unused]] Lanes beta) {                          \
      return f;                                                                           \
    }                                                                                     \
    template <class X>                                                                    \
    static HWY_INLINE auto Booleans([[maybe_unused]] X x, [[maybe_unused]] Lanes y,       \
                                    [[maybe_unused]] Lanes z) {                           \
      return b;                                                                           \
    }                                                                                     \
  };
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
#undef NONE
#undef K

template <class Row, bool bools>
HWY_INLINE auto Compute(Lanes x, Lanes y, Lanes z, Lanes alpha, Lanes beta) {
  using X = std::conditional_t<Row::kCondition, Condition, Lanes>;
  X first;
  if constexpr (Row::kCondition) {
    first = x != Lanes(0.0);
  } else {
    first = x;
  }
  if constexpr (bools) {
    return Row::template Booleans<X>(first, y, z);
  } else {
    return Row::template Floats<X>(first, y, z, alpha, beta);
  }
}

// n is a multiple of kLanes.
template <class Row, bool bools>
HWY_NOINLINE void WholeVectors(const float* x, const float* HWY_RESTRICT y, const float* z,
                               float* out, int64_t n, float alpha, float beta) {
  const Floats d;
  const Lanes a(hn::Set(d, alpha)), b(hn::Set(d, beta));
  for (int64_t i = 0; i < n; i += kLanes) {
    const Lanes first = hn::LoadU(d, x + i);
    Lanes second = first, third = first;
    if constexpr (Row::kInputs > 1) second = hn::LoadU(d, y + i);
    if constexpr (Row::kInputs > 2) third = hn::LoadU(d, z + i);
    hn::StoreU(Lanes(Compute<Row, bools>(first, second, third, a, b)).v, d, out + i);
  }
}

template <class Row, bool bools>
void Loop(const float* x, const float* y, const float* z, float* out, int64_t n, float alpha,
          float beta) {
  const int64_t whole = n - n % kLanes;
  if (whole > 0) WholeVectors<Row, bools>(x, y, z, out, whole, alpha, beta);
  if (whole == n) return;
  // The tail goes through vectors on the stack.
  HWY_ALIGN float tail[4][kLanes];
  const int64_t rest = n - whole;
  const float* from[3] = {x, y, z};
  for (int k = 0; k < Row::kInputs; ++k) {
    StoreSome(LoadSome(from[k] + whole, rest), tail[k], kLanes);
  }
  WholeVectors<Row, bools>(tail[0], tail[1], tail[2], tail[3], kLanes, alpha, beta);
  StoreSome(LoadSome(tail[3], kLanes), out + whole, rest);
}

template <class Row, bool bools>
constexpr LaneFunction MakeLoop() {
  using R = decltype(Compute<Row, bools>(Lanes(), Lanes(), Lanes(), Lanes(), Lanes()));
  if constexpr (std::is_same_v<R, None>) {
    return nullptr;
  } else {
    return &Loop<Row, bools>;
  }
}

// In the order of ElementwiseRows().
const LaneFunctions* Functions() {
  static constexpr LaneFunctions kFunctions[] = {
#define ELEMENTWISE(name, ...) {MakeLoop<name##Row, false>(), MakeLoop<name##Row, true>()},
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
  };
  return kFunctions;
}

// Bytes (bool: 0 or 1) as floats.
void BytesToFloats(const uint8_t* from, int64_t n, float* to, bool condition) {
  const Floats d;
  const hn::Rebind<int32_t, Floats> wide;
  const hn::Rebind<uint8_t, Floats> bytes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vector v = hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(bytes, from + i)));
    if (condition) v = hn::Min(v, hn::Set(d, 1.0f));
    hn::StoreU(v, d, to + i);
  }
  for (; i < n; ++i) to[i] = condition ? (from[i] != 0 ? 1.0f : 0.0f) : from[i];
}

// Integers of 8 or 16 bits as floats.
template <class T>
void NarrowToFloats(const T* from, int64_t n, float* to) {
  const Floats d;
  const hn::Rebind<int32_t, Floats> wide;
  const hn::Rebind<T, Floats> narrow;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, from + i))), d, to + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}
void I8ToFloats(const int8_t* from, int64_t n, float* to) { NarrowToFloats(from, n, to); }
void I16ToFloats(const int16_t* from, int64_t n, float* to) { NarrowToFloats(from, n, to); }
void U16ToFloats(const uint16_t* from, int64_t n, float* to) { NarrowToFloats(from, n, to); }

template <class From, class To>
void ConvertLanes(const From* from, int64_t n, To* to) {
  for (int64_t i = 0; i < n; i += kLanes) StoreSome(LoadSome(from + i, n - i), to + i, n - i);
}
void HalfToFloats(const Half* from, int64_t n, float* to) { ConvertLanes(from, n, to); }
void BFloat16ToFloats(const BFloat16* from, int64_t n, float* to) { ConvertLanes(from, n, to); }
void FloatsToHalf(const float* from, int64_t n, Half* to) { ConvertLanes(from, n, to); }
void FloatsToBFloat16(const float* from, int64_t n, BFloat16* to) { ConvertLanes(from, n, to); }

// Clamped to what the type holds, as ConvertElement does; a NaN is 0.
template <class T>
void CutToNarrow(const float* from, int64_t n, T* to) {
  const Floats d;
  const hn::Rebind<int32_t, Floats> wide;
  const hn::Rebind<T, Floats> narrow;
  const Vector least = hn::Set(d, static_cast<float>(hwy::LimitsMin<T>()));
  const Vector most = hn::Set(d, static_cast<float>(hwy::LimitsMax<T>()));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector given = hn::LoadU(d, from + i);
    const Vector v = hn::IfThenElseZero(hn::Eq(given, given), given);
    const auto cut = hn::ConvertTo(wide, hn::Min(hn::Max(v, least), most));
    hn::StoreU(hn::DemoteTo(narrow, cut), narrow, to + i);
  }
  for (; i < n; ++i) to[i] = ConvertElement<T>(from[i]);
}
// Clamped as ConvertElement does. Only the upper bound and NaN need code: the conversion itself
// gives the lowest number for what lies below.
void FloatsToI32(const float* from, int64_t n, int32_t* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> ints;
  const auto cut = [&](Vector v) HWY_ATTR {
    const auto number = hn::ConvertTo(ints, hn::IfThenElseZero(hn::Eq(v, v), v));
    const auto above = hn::RebindMask(ints, hn::Ge(v, hn::Set(d, 0x1p31f)));
    return hn::IfThenElse(above, hn::Set(ints, hwy::LimitsMax<int32_t>()), number);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(cut(hn::LoadU(d, from + i)), ints, to + i);
  for (; i < n; ++i) to[i] = ConvertElement<int32_t>(from[i]);
}
// Converts by way of 32 bits if all values fit.
void FloatsToI64(const float* from, int64_t n, int64_t* to) {
  const hn::ScalableTag<int64_t> wide;
  const hn::Rebind<int32_t, decltype(wide)> ints;
  const hn::Rebind<float, decltype(wide)> d;
  constexpr int64_t kWide = HWY_LANES(int64_t);
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide) {
    const auto v = hn::LoadU(d, from + i);
    if (hn::AllTrue(d, hn::Lt(hn::Abs(v), hn::Set(d, 0x1p31f)))) {
      hn::StoreU(hn::PromoteTo(wide, hn::ConvertTo(ints, v)), wide, to + i);
    } else {
      for (int64_t j = i; j < i + kWide; ++j) to[j] = ConvertElement<int64_t>(from[j]);
    }
  }
  for (; i < n; ++i) to[i] = ConvertElement<int64_t>(from[i]);
}
void FloatsToBools(const float* from, int64_t n, uint8_t* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> ints;
  const hn::Rebind<uint8_t, Floats> bytes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto zero = hn::RebindMask(ints, hn::Eq(hn::LoadU(d, from + i), hn::Zero(d)));
    const auto ones = hn::IfThenZeroElse(zero, hn::Set(ints, 1));
    hn::StoreU(hn::DemoteTo(bytes, ones), bytes, to + i);
  }
  for (; i < n; ++i) to[i] = from[i] != 0 ? 1 : 0;
}
void I32ToFloats(const int32_t* from, int64_t n, float* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> ints;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::ConvertTo(d, hn::LoadU(ints, from + i)), d, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
void FloatsToU8(const float* from, int64_t n, uint8_t* to) { CutToNarrow(from, n, to); }
void FloatsToI8(const float* from, int64_t n, int8_t* to) { CutToNarrow(from, n, to); }
void FloatsToI16(const float* from, int64_t n, int16_t* to) { CutToNarrow(from, n, to); }
void FloatsToU16(const float* from, int64_t n, uint16_t* to) { CutToNarrow(from, n, to); }

void FillFloatsHere(float value, int64_t n, float* to) {
  const Vector v = hn::Set(Floats(), value);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreAll(v, to + i);
  if (i < n) StoreSome(v, to + i, n - i);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(FloatsToI32);
HWY_EXPORT(FloatsToI16);
HWY_EXPORT(FloatsToU16);
HWY_EXPORT(I8ToFloats);
HWY_EXPORT(I16ToFloats);
HWY_EXPORT(U16ToFloats);
HWY_EXPORT(FloatsToI64);
HWY_EXPORT(FloatsToBools);
HWY_EXPORT(I32ToFloats);
HWY_EXPORT(FloatsToU8);
HWY_EXPORT(FloatsToI8);
HWY_EXPORT(Functions);
HWY_EXPORT(FillFloatsHere);
HWY_EXPORT(BytesToFloats);
HWY_EXPORT(HalfToFloats);
HWY_EXPORT(BFloat16ToFloats);
HWY_EXPORT(FloatsToHalf);
HWY_EXPORT(FloatsToBFloat16);

LaneFunction LaneFunctionOf(const ElementwiseRow& row, ElementClass operands) {
  const LaneFunctions& f = HWY_DYNAMIC_DISPATCH(Functions)()[&row - ElementwiseRows().data()];
  if (operands == ElementClass::kFloat) return f.floats;
  return operands == ElementClass::kBool ? f.bools : nullptr;
}

void FillFloats(float value, int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(FillFloatsHere)(value, n, to);
}
void ToFloats(DType dtype, const void* from, int64_t n, float* to) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kU8:
    case DType::kBool:
      return HWY_DYNAMIC_DISPATCH(BytesToFloats)(static_cast<const uint8_t*>(from), n, to,
                                                 dtype == DType::kBool);
    case DType::kI8:
      return HWY_DYNAMIC_DISPATCH(I8ToFloats)(static_cast<const int8_t*>(from), n, to);
    case DType::kI16:
      return HWY_DYNAMIC_DISPATCH(I16ToFloats)(static_cast<const int16_t*>(from), n, to);
    case DType::kU16:
      return HWY_DYNAMIC_DISPATCH(U16ToFloats)(static_cast<const uint16_t*>(from), n, to);
    case DType::kI32:
      return HWY_DYNAMIC_DISPATCH(I32ToFloats)(static_cast<const int32_t*>(from), n, to);
    case DType::kF16:
      return HWY_DYNAMIC_DISPATCH(HalfToFloats)(static_cast<const Half*>(from), n, to);
    case DType::kBF16:
      return HWY_DYNAMIC_DISPATCH(BFloat16ToFloats)(static_cast<const BFloat16*>(from), n, to);
    default:
      break;
  }
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    const auto* x = static_cast<const internal::Stored<T>*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i]);
  });
}

void FromFloats(const float* from, int64_t n, DType dtype, void* to) {
  switch (dtype) {
    case DType::kU8:
      return HWY_DYNAMIC_DISPATCH(FloatsToU8)(from, n, static_cast<uint8_t*>(to));
    case DType::kI8:
      return HWY_DYNAMIC_DISPATCH(FloatsToI8)(from, n, static_cast<int8_t*>(to));
    case DType::kI16:
      return HWY_DYNAMIC_DISPATCH(FloatsToI16)(from, n, static_cast<int16_t*>(to));
    case DType::kU16:
      return HWY_DYNAMIC_DISPATCH(FloatsToU16)(from, n, static_cast<uint16_t*>(to));
    case DType::kI32:
      return HWY_DYNAMIC_DISPATCH(FloatsToI32)(from, n, static_cast<int32_t*>(to));
    case DType::kI64:
      return HWY_DYNAMIC_DISPATCH(FloatsToI64)(from, n, static_cast<int64_t*>(to));
    case DType::kBool:
      return HWY_DYNAMIC_DISPATCH(FloatsToBools)(from, n, static_cast<uint8_t*>(to));
    case DType::kF16:
      return HWY_DYNAMIC_DISPATCH(FloatsToHalf)(from, n, static_cast<Half*>(to));
    case DType::kBF16:
      return HWY_DYNAMIC_DISPATCH(FloatsToBFloat16)(from, n, static_cast<BFloat16*>(to));
    default:
      break;
  }
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[i] = ConvertElement<T>(from[i]);
  });
}

}  // namespace oncilla::cpu
#endif
