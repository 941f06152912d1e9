// Activations on vectors of float, for the ends of fast kernels. Included once per instruction set.
//
// Within 2e-6 of the exact formulas of engine/ops/activation.h, relative to max(1, |x|); infinities
// give what the formulas give and NaN stays NaN. Relu and Relu6 are bounds and need no code here.
#if defined(ONCILLA_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_ACTIVATION_INL_H_
#undef ONCILLA_CPU_ACTIVATION_INL_H_
#else
#define ONCILLA_CPU_ACTIVATION_INL_H_
#endif

#include "engine/ops/activation.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp, for arguments that may be anything but NaN; stops at e^88.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V BoundedExp(D d, V x) {
  return hn::Exp(d, hn::Min(x, hn::Set(d, 88.0f)));
}

// x / (1 + e^-s): sigmoid times x, taken at s.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TimesSigmoid(D d, V x, V s) {
  const V product = hn::Div(x, hn::Add(hn::Set(d, 1.0f), BoundedExp(d, hn::Neg(s))));
  // Beyond the bound of the exponential the product is as good as zero, also for infinite x.
  return hn::IfThenZeroElse(hn::Lt(s, hn::Set(d, -88.0f)), product);
}

// erf as a quotient of two polynomials in x^2 on [-4, 4]; the error is below 5e-7.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  x = hn::Clamp(x, hn::Set(d, -4.0f), hn::Set(d, 4.0f));
  const V z = hn::Mul(x, x);
  V p = hn::Set(d, -2.72614225801306e-10f);
  for (const float c : {2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
                        -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f}) {
    p = hn::MulAdd(p, z, hn::Set(d, c));
  }
  V q = hn::Set(d, -1.45660718464996e-05f);
  for (const float c : {-2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f,
                        -1.42647390514189e-02f}) {
    q = hn::MulAdd(q, z, hn::Set(d, c));
  }
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
      y = TimesSigmoid(d, hn::Set(d, 1.0f), x);
      break;
    case Activation::kSilu:
      y = TimesSigmoid(d, x, x);
      break;
    case Activation::kTanh:
      y = hn::Tanh(d, hn::Clamp(x, hn::Set(d, -20.0f), hn::Set(d, 20.0f)));
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

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
