// The last step of convolutions that are computed by rows: adds the residual to the sums, applies
// the activation, and stores the result. Included once per instruction set.
#if defined(ONCILLA_CPU_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_FINISH_INL_H_
#undef ONCILLA_CPU_FINISH_INL_H_
#else
#define ONCILLA_CPU_FINISH_INL_H_
#endif

#include <limits>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// T is the type in memory. Offsets are the same in y and in the residual, which have one layout.
template <class T>
struct Finisher {
  const T* residual;
  T* y;
  Vector low, high;  // Relu and Relu6 are bounds
  bool curved;
  Activation activation;

  Finisher(const Epilogue<T>& epilogue, T* to, int64_t at)
      : residual(epilogue.residual != nullptr ? epilogue.residual + at : nullptr),
        y(to + at),
        activation(epilogue.activation) {
    const bool bounded = activation == Activation::kRelu || activation == Activation::kRelu6;
    constexpr float kInf = std::numeric_limits<float>::infinity();
    low = hn::Set(Floats(), bounded ? 0 : -kInf);
    high = hn::Set(Floats(), activation == Activation::kRelu6 ? 6 : kInf);
    curved = activation != Activation::kNone && !bounded;
  }

  HWY_INLINE void One(Vector sum, int64_t at, int64_t count) const {
    if (residual != nullptr) sum = hn::Add(sum, LoadSome(residual + at, count));
    sum = Bounded(low, high, sum);
    if (curved) sum = CallActivate(Floats(), activation, sum);
    StoreSome(sum, y + at, count);
  }

  // Finishes pixels `step` apart from offset `at` on, in whole vectors; one call applies the
  // activation to all of them.
  template <int kPixels>
  HWY_INLINE void Pixels(const Vector (&sum)[kPixels], int64_t at, int64_t step) const {
    if (!curved) {
      ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) One(sum[p], at + p * step, kLanes);
      return;
    }
    constexpr Floats d;
    HWY_ALIGN float sums[kPixels * kLanes];
    ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
      Vector v = sum[p];
      if (residual != nullptr) v = hn::Add(v, LoadAll(residual + at + p * step));
      hn::Store(v, d, sums + p * kLanes);
    }
    CallActivate(d, activation, sums, kPixels);
    ONCILLA_UNROLL for (int p = 0; p < kPixels; ++p) {
      StoreAll(hn::Load(d, sums + p * kLanes), y + at + p * step);
    }
  }
};

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
