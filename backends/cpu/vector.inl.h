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

// The first `count` lanes, or all when there are more; the rest is zero.
HWY_INLINE Vector LoadSome(const float* from, int64_t count) {
  constexpr Floats d;
  return count >= kLanes ? hn::LoadU(d, from) : hn::MaskedLoad(hn::FirstN(d, count), d, from);
}
HWY_INLINE void StoreSome(Vector v, float* to, int64_t count) {
  constexpr Floats d;
  if (count >= kLanes) {
    hn::StoreU(v, d, to);
  } else {
    hn::BlendedStore(v, hn::FirstN(d, count), d, to);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
