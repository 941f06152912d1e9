// Whole and partial vectors of float, out of memory that holds float, float16 or bfloat16. Included
// once per instruction set.
#if defined(ONCILLA_CPU_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_VECTOR_INL_H_
#undef ONCILLA_CPU_VECTOR_INL_H_
#else
#define ONCILLA_CPU_VECTOR_INL_H_
#endif

#include "backends/cpu/unroll.h"
#include "engine/base/half.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr int kLanes = HWY_LANES(float);

// v within bounds; NaN stays NaN.
HWY_INLINE Vector Bounded(Vector low, Vector high, Vector v) {
  // v is the second operand: min and max of x86 return the second operand when one is NaN, those of
  // NEON return the NaN.
  const Vector bounded = hn::Min(high, hn::Max(low, v));
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Eq(v, v), bounded, v);  // emulated Min and Max drop a NaN
#else
  return bounded;
#endif
}

// Partial loads and stores touch only the lanes that they name: the memory after these may belong
// to another thread, or be unmapped. Instruction sets without masks use a vector on the stack,
// because Highway's partial stores read and write a whole aligned vector there.

#undef ONCILLA_NO_MASKS
#define ONCILLA_NO_MASKS (HWY_MEM_OPS_MIGHT_FAULT && HWY_TARGET != HWY_AVX2)

// The first `count` lanes, or all when there are more; the rest is zero.
HWY_INLINE Vector LoadSome(const float* from, int64_t count) {
  constexpr Floats d;
  if (count >= kLanes) return hn::LoadU(d, from);
#if ONCILLA_NO_MASKS
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
}
HWY_INLINE void StoreSome(Vector v, float* to, int64_t count) {
  constexpr Floats d;
  if (count >= kLanes) {
    hn::StoreU(v, d, to);
    return;
  }
#if ONCILLA_NO_MASKS
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
}

// Half as vectors where the instruction set converts it; element by element elsewhere.
#undef ONCILLA_CONVERTS_HALF
#ifdef HWY_DISABLE_F16C
#define ONCILLA_CONVERTS_HALF 0
#else
#define ONCILLA_CONVERTS_HALF \
  ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON))
#endif

HWY_INLINE Vector LoadAll(const float* from) { return hn::LoadU(Floats(), from); }
HWY_INLINE Vector LoadAll(const Half* from) {
  constexpr Floats d;
#if ONCILLA_CONVERTS_HALF
  const hn::Rebind<hwy::float16_t, Floats> halves;
  return hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  HWY_ALIGN float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(from[i]);
  return hn::Load(d, lanes);
#endif
}
HWY_INLINE Vector LoadAll(const BFloat16* from) {
  constexpr Floats d;
  const hn::RebindToUnsigned<Floats> words;
  const hn::Rebind<uint16_t, Floats> halves;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

HWY_INLINE void StoreAll(Vector v, float* to) { hn::StoreU(v, Floats(), to); }
HWY_INLINE void StoreAll(Vector v, Half* to) {
#if ONCILLA_CONVERTS_HALF
  const hn::Rebind<hwy::float16_t, Floats> halves;
  hn::StoreU(hn::DemoteTo(halves, v), halves, reinterpret_cast<hwy::float16_t*>(to));
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, Floats(), lanes);
  for (int i = 0; i < kLanes; ++i) to[i] = Half(lanes[i]);
#endif
}
// Rounds to nearest, ties to even; a NaN stays a NaN.
HWY_INLINE void StoreAll(Vector v, BFloat16* to) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::RebindToSigned<Floats> ints;
  const hn::Rebind<uint16_t, Floats> halves;
  const auto u = hn::BitCast(words, v);
  const auto high = hn::ShiftRight<16>(u);
  const auto odd = hn::And(high, hn::Set(words, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(words, 0x7fff))));
  const auto nan = hn::Or(high, hn::Set(words, 0x40));
  const auto bits = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), nan, rounded);
  hn::StoreU(hn::DemoteTo(halves, hn::BitCast(ints, bits)), halves,
             reinterpret_cast<uint16_t*>(to));
}

// Partial 16-bit vectors: with masks where the instruction set has them for 16-bit lanes, else
// through a whole vector.
#undef ONCILLA_MASKS_HALVES
#define ONCILLA_MASKS_HALVES (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)

template <class T>
HWY_INLINE Vector LoadSome(const T* from, int64_t count) {
  if (count >= kLanes) return LoadAll(from);
  T lanes[kLanes] = {};
#if ONCILLA_MASKS_HALVES
  const hn::Rebind<uint16_t, Floats> halves;
  const auto some = hn::MaskedLoad(hn::FirstN(halves, static_cast<size_t>(count)), halves,
                                   reinterpret_cast<const uint16_t*>(from));
  hn::StoreU(some, halves, reinterpret_cast<uint16_t*>(lanes));
#else
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
#endif
  return LoadAll(lanes);
}
template <class T>
HWY_INLINE void StoreSome(Vector v, T* to, int64_t count) {
  if (count >= kLanes) {
    StoreAll(v, to);
    return;
  }
  T lanes[kLanes];
  StoreAll(v, lanes);
#if ONCILLA_MASKS_HALVES
  const hn::Rebind<uint16_t, Floats> halves;
  hn::BlendedStore(hn::LoadU(halves, reinterpret_cast<const uint16_t*>(lanes)),
                   hn::FirstN(halves, static_cast<size_t>(count)), halves,
                   reinterpret_cast<uint16_t*>(to));
#else
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
