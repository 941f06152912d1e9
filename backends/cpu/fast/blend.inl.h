// Weighted sums of rows of float or of 16-bit floats. Included once per instruction set.
#if defined(ONCILLA_CPU_BLEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_BLEND_INL_H_
#undef ONCILLA_CPU_BLEND_INL_H_
#else
#define ONCILLA_CPU_BLEND_INL_H_
#endif

#include "backends/cpu/vector.inl.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// y[i] = sum of weights times inputs, over `count` elements. kTaps > 0 fixes the number of taps.
template <int kTaps, class From, class To>
HWY_INLINE void WeightedSum(const From* const* x, const float* weight, int taps, int64_t count,
                            To* y) {
  constexpr Floats d;
  if (kTaps > 0) taps = kTaps;
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector sum = hn::Mul(hn::Set(d, weight[0]), LoadSome(x[0] + i, count - i));
    for (int t = 1; t < taps; ++t) {
      sum = hn::MulAdd(hn::Set(d, weight[t]), LoadSome(x[t] + i, count - i), sum);
    }
    StoreSome(sum, y + i, count - i);
  }
}

// The same for any number of taps, at least one.
template <class From, class To>
void Blend(const From* const* x, const float* weight, int taps, int64_t count, To* y) {
  switch (taps) {
    case 2:
      return WeightedSum<2>(x, weight, taps, count, y);
    case 4:
      return WeightedSum<4>(x, weight, taps, count, y);
    default:
      return WeightedSum<0>(x, weight, taps, count, y);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
