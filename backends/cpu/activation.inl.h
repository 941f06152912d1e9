// Activations on vectors of float, for the ends of fast kernels. Included once per instruction set.
//
// Results are within 2e-6 of the exact formulas of engine/ops/math/activation.h, relative to
// max(1, |x|); infinities give what the formulas give and NaN stays NaN. Relu and Relu6 are bounds
// and need no code here.
#if defined(ONCILLA_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_ACTIVATION_INL_H_
#undef ONCILLA_CPU_ACTIVATION_INL_H_
#else
#define ONCILLA_CPU_ACTIVATION_INL_H_
#endif

#include "engine/ops/math/activation.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A polynomial by Horner's rule, the highest coefficient first. The recursion is unrolled, unlike a
// loop over a list of coefficients.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D, V, V sum) {
  return sum;
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V Polynomial(D d, V x, V sum, float next, Rest... rest) {
  return Polynomial(d, x, hn::MulAdd(sum, x, hn::Set(d, next)), rest...);
}

// exp of x, or of -x with a sign of -1, for arguments in [-86, 86]; NaN stays NaN. Computed as 2^n
// times a polynomial of the remainder r, |r| <= ln(2) / 2, that minimises the relative error
// (8e-8). It is shorter than Highway's exp, which serves all arguments. A sign of -1 leaves r
// negated, which the signs of the odd coefficients undo.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V BoundedExp(D d, V x, float sign) {
  // Adding 1.5 * 2^23 rounds x / ln(2) to an integer n, which then stands in the lowest bits.
  const V shifter = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, sign * 1.44269504f), shifter);
  const V n = hn::Sub(shifted, shifter);
  const V r = hn::MulAdd(n, hn::Set(d, sign * -0.69314718f), x);
  const V p = Polynomial(d, r, hn::Set(d, sign * 0.008297619f), 0.04191563f, sign * 0.16667576f,
                         0.4999889f, sign * 0.9999997f, 1.0000001f);
  // The polynomial is in [0.7, 1.5], so adding n to its exponent stays within the normal numbers.
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V BoundedExp(D d, V x) {
  return BoundedExp(d, x, 1.0f);
}

// exp of any x, within 8e-8 of it: 0 below -104, infinity from 89 on; NaN stays NaN where
// kBoundsKeepNaN. As in BoundedExp, but ln(2) is split into two parts, so that n times the first is
// exact; the polynomial has one degree more (3e-9); and 2^n is applied as two factors, since a
// single one would not be a normal number at the ends of the range.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WholeExp(D d, V x) {
  x = hn::Max(hn::Set(d, -104.0f), hn::Min(hn::Set(d, 89.0f), x));
  const V shifter = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), shifter);
  const V n = hn::Sub(shifted, shifter);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
  const V p = Polynomial(d, r, hn::Set(d, 0.0013814541f), 0.008368745f, 0.04166839f, 0.16666521f,
                         0.49999994f, 1.0f, 1.0f);
  const hn::RebindToSigned<D> di;
  const auto whole = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, shifter));
  const auto half = hn::ShiftRight<1>(whole), one = hn::Set(di, 127);
  const auto power = [&](auto k)
                         HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, one))); };
  return hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(whole, half)));
}

// tanh as x P(x^2) / Q(x^2), fitted on [0, 9.1] to a relative error of 2.3e-8; beyond 9 it is 1.
// With rounding it is within 4e-7. NaN stays NaN where kBoundsKeepNaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhOf(D d, V x) {
  const V most = hn::Set(d, 9.0f), one = hn::Set(d, 1.0f);
  x = hn::Max(hn::Neg(most), hn::Min(most, x));
  const V z = hn::Mul(x, x);
  const V p =
      Polynomial(d, z, hn::Set(d, 1.3177542e-8f), 2.0481204e-5f, 0.0034878124f, 0.13374476f, 1.0f);
  const V q =
      Polynomial(d, z, hn::Set(d, 7.704055e-7f), 3.2729222e-4f, 0.025847394f, 0.46707791f, 1.0f);
  const V y = hn::Div(hn::Mul(x, p), q);
  return hn::Max(hn::Neg(one), hn::Min(one, y));
}

// 1 / x for x in [1, 2^127]. On x86 this is the processor's estimate, good to 11 bits, and one step
// of Newton's method, which doubles them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Reciprocal(D d, V x) {
#if HWY_ARCH_X86
  const V guess = hn::ApproximateReciprocal(x);
  return hn::Mul(guess, hn::NegMulAdd(x, guess, hn::Set(d, 2.0f)));
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

// 1 / (1 + e^-s). The result for NaN is unspecified.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SigmoidOf(D d, V s) {
  const V bound = hn::Set(d, 86.0f);
  const V e = BoundedExp(d, hn::Clamp(s, hn::Neg(bound), bound), -1.0f);
  return Reciprocal(d, hn::Add(hn::Set(d, 1.0f), e));
}

// x times the sigmoid of s, where x and s have the same sign. Below the bound the product is as
// good as zero, also for an infinite x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TimesSigmoid(D d, V x, V s) {
  return hn::IfThenZeroElse(hn::Lt(s, hn::Set(d, -86.0f)), hn::Mul(x, SigmoidOf(d, s)));
}

// Whether Max and Min return the NaN if it is their second operand: x86 returns the second operand
// when one is NaN, and NEON the NaN. Emulated vectors compare, and so drop it.
constexpr bool kBoundsKeepNaN = HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR;

// x is bounded from below first, so that an infinity is never multiplied by zero. x is the second
// operand of each bound, so that NaN stays NaN where kBoundsKeepNaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  const V bound = hn::Set(d, 86.0f);
  const V from = hn::Max(hn::Neg(bound), x);
  const V e = BoundedExp(d, hn::Min(bound, from), -1.0f);
  return hn::Mul(from, Reciprocal(d, hn::Add(hn::Set(d, 1.0f), e)));
}

// erf as a quotient of two polynomials in x^2 on [-4, 4]; the error is below 5e-7.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  x = hn::Clamp(x, hn::Set(d, -4.0f), hn::Set(d, 4.0f));
  const V z = hn::Mul(x, x);
  const V p = Polynomial(d, z, hn::Set(d, -2.72614225801306e-10f), 2.77068142495902e-08f,
                         -2.10102402082508e-06f, -5.69250639462346e-05f, -7.34990630326855e-04f,
                         -2.95459980854025e-03f, -1.60960333262415e-02f);
  const V q = Polynomial(d, z, hn::Set(d, -1.45660718464996e-05f), -2.13374055278905e-04f,
                         -1.68282697438203e-03f, -7.37332916720468e-03f, -1.42647390514189e-02f);
  return hn::Div(hn::Mul(x, p), q);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  const V inner = hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
  const V positive = hn::IfThenElse(hn::Gt(x, hn::Set(d, 5.5f)), x, inner);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -5.5f)), positive);
}

// Any activation but kNone.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activate(D d, Activation activation, V x) {
  V y = x;
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      y = hn::Max(x, hn::Zero(d));
      break;
    case Activation::kRelu6:
      y = hn::Clamp(x, hn::Zero(d), hn::Set(d, 6.0f));
      break;
    case Activation::kGelu:
      y = Gelu(d, x);
      break;
    case Activation::kGeluTanh: {
      // 1 + tanh(u) = 2 sigmoid(2 u)
      const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
      y = TimesSigmoid(d, x, hn::Mul(cubic, hn::Set(d, 1.5957691216f)));
      break;
    }
    case Activation::kSigmoid:
      y = SigmoidOf(d, x);
      break;
    case Activation::kSilu:
      y = Silu(d, x);
      break;
    case Activation::kTanh:
      y = TanhOf(d, x);
      break;
    case Activation::kHardSwish: {
      const V three = hn::Set(d, 3.0f), sixth = hn::Set(d, 1.0f / 6);
      y = hn::Mul(hn::Mul(x, hn::Add(x, three)), sixth);
      y = hn::IfThenElse(hn::Ge(x, three), x, y);
      y = hn::IfThenZeroElse(hn::Le(x, hn::Neg(three)), y);
      break;
    }
  }
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// Calls fn(function) with the activation as a function of a vector. The activation is chosen once,
// outside the loop in `fn`, so that its constants stay in registers.
template <class D, class F>
HWY_INLINE void WithActivation(D d, Activation activation, F&& fn) {
  using V = hn::Vec<D>;
  if (activation == Activation::kSilu) {
    fn([d](V x) HWY_ATTR {
      return kBoundsKeepNaN ? Silu(d, x) : hn::IfThenElse(hn::IsNaN(x), x, Silu(d, x));
    });
  } else {
    fn([d, activation](V x) HWY_ATTR { return Activate(d, activation, x); });
  }
}

// Applies the activation to `count` vectors in place. Not inlined, because the code is large and
// used in many places.
template <class D>
HWY_NOINLINE void CallActivate(D d, Activation activation, hn::TFromD<D>* vectors, int count) {
  WithActivation(d, activation, [&](const auto& function) HWY_ATTR {
    for (int i = 0; i < count; ++i, vectors += hn::MaxLanes(d)) {
      hn::Store(function(hn::Load(d, vectors)), d, vectors);
    }
  });
}
// The same for one vector.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V CallActivate(D d, Activation activation, V x) {
  return Activate(d, activation, x);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
