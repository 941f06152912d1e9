// Whole and partial vectors of float. Included once per instruction set.
#if defined(ONCILLA_CPU_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_VECTOR_INL_H_
#undef ONCILLA_CPU_VECTOR_INL_H_
#else
#define ONCILLA_CPU_VECTOR_INL_H_
#endif

#include "hwy/highway.h"

// Loops of a few steps over arrays of vectors, which must end up in registers.
#undef ONCILLA_UNROLL
#define ONCILLA_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr int kLanes = HWY_LANES(float);

// Loads and stores of a part touch only that part: what lies behind may be another thread's, or no
// memory at all. Instruction sets without masks go through a vector of their own; what Highway does
// there reads a whole aligned vector, and writes one back.

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

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
