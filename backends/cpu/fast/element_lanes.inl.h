// The functions that elementwise_table.inc uses, on vectors of float. Included once per instruction
// set.
//
// Results are within 1e-5 of the exact functions, mostly within a few units in the last place,
// including those for NaN, infinities and arguments out of range. A vector with arguments outside
// the range in which an approximation is good is computed lane by lane by the C library, as are
// functions that models rarely use.
#if defined(ONCILLA_CPU_ELEMENT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONCILLA_CPU_ELEMENT_LANES_INL_H_
#undef ONCILLA_CPU_ELEMENT_LANES_INL_H_
#else
#define ONCILLA_CPU_ELEMENT_LANES_INL_H_
#endif

#include <cmath>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// A condition per lane.
struct Condition {
  hn::Mask<Floats> m;
};
HWY_INLINE Condition operator&&(Condition a, Condition b) { return {hn::And(a.m, b.m)}; }
HWY_INLINE Condition operator||(Condition a, Condition b) { return {hn::Or(a.m, b.m)}; }
HWY_INLINE Condition operator!=(Condition a, Condition b) { return {hn::Xor(a.m, b.m)}; }

// A vector with the operators that expressions use; constants convert to one.
struct Lanes {
  Vector v;

  Lanes() = default;
  HWY_INLINE Lanes(Vector vector) : v(vector) {}  // implicit, as for a number
  HWY_INLINE explicit Lanes(double c) : v(hn::Set(Floats(), static_cast<float>(c))) {}
  // 1 where the condition holds, else 0: how tiles keep booleans.
  HWY_INLINE explicit Lanes(Condition c) : v(hn::IfThenElseZero(c.m, hn::Set(Floats(), 1.0f))) {}
};
HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
HWY_INLINE Lanes operator-(Lanes a) { return hn::Neg(a.v); }
HWY_INLINE Condition operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }
// As in C, NaN differs from everything; Highway leaves that open.
HWY_INLINE Condition operator!=(Lanes a, Lanes b) { return {hn::Not(hn::Eq(a.v, b.v))}; }
HWY_INLINE Condition operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
HWY_INLINE Condition operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
HWY_INLINE Condition operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
HWY_INLINE Condition operator>=(Lanes a, Lanes b) { return {hn::Ge(a.v, b.v)}; }

HWY_INLINE Lanes Select(Condition c, Lanes a, Lanes b) { return hn::IfThenElse(c.m, a.v, b.v); }
// x where it is NaN, else y.
HWY_INLINE Lanes KeepNan(Lanes x, Vector y) { return hn::IfThenElse(hn::IsNaN(x.v), x.v, y); }

// Each lane through a function of the C library.
template <float (*function)(float)>
HWY_NOINLINE Lanes EachLane(Lanes a) {
  HWY_ALIGN float x[kLanes];
  hn::Store(a.v, Floats(), x);
  for (float& v : x) v = function(v);
  return hn::Load(Floats(), x);
}
template <float (*function)(float, float)>
HWY_NOINLINE Lanes EachLane(Lanes a, Lanes b) {
  HWY_ALIGN float x[kLanes], y[kLanes];
  hn::Store(a.v, Floats(), x);
  hn::Store(b.v, Floats(), y);
  for (int i = 0; i < kLanes; ++i) x[i] = function(x[i], y[i]);
  return hn::Load(Floats(), x);
}
template <float (*function)(float, float, float)>
HWY_NOINLINE Lanes EachLane(Lanes a, Lanes b, Lanes c) {
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a.v, Floats(), x);
  hn::Store(b.v, Floats(), y);
  hn::Store(c.v, Floats(), z);
  for (int i = 0; i < kLanes; ++i) x[i] = function(x[i], y[i], z[i]);
  return hn::Load(Floats(), x);
}
HWY_INLINE bool All(Condition c) { return hn::AllTrue(Floats(), c.m); }

HWY_INLINE Lanes Min(Lanes a, Lanes b) { return Select(a != a || a < b, a, b); }
HWY_INLINE Lanes Max(Lanes a, Lanes b) { return Select(a != a || a > b, a, b); }
HWY_INLINE Lanes Fma(Lanes a, Lanes b, Lanes c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a.v, b.v, c.v);
#else
  return EachLane<std::fma>(a, b, c);
#endif
}
HWY_INLINE Lanes Abs(Lanes a) { return hn::Abs(a.v); }
HWY_INLINE Lanes Floor(Lanes a) { return hn::Floor(a.v); }
HWY_INLINE Lanes Ceil(Lanes a) { return hn::Ceil(a.v); }
HWY_INLINE Lanes Round(Lanes a) { return hn::Round(a.v); }
HWY_INLINE Lanes Sqrt(Lanes a) { return hn::Sqrt(a.v); }

HWY_INLINE Lanes Exp(Lanes a) { return KeepNan(a, WholeExp(Floats(), a.v)); }
// e^104 overflows float already, and Highway's function needs bounded arguments.
HWY_INLINE Lanes Expm1(Lanes a) {
  const Floats d;
  return KeepNan(a, hn::Expm1(d, hn::Min(a.v, hn::Set(d, 104.0f))));
}
HWY_INLINE Lanes Tanh(Lanes a) { return KeepNan(a, TanhOf(Floats(), a.v)); }
HWY_INLINE Lanes Log(Lanes a) {
  if (All(a > Lanes(0) && a < Lanes(INFINITY))) return hn::Log(Floats(), a.v);
  return EachLane<std::log>(a);
}
HWY_INLINE Lanes Log1p(Lanes a) {
  if (All(a > Lanes(-1) && a < Lanes(INFINITY))) return hn::Log1p(Floats(), a.v);
  return EachLane<std::log1p>(a);
}
HWY_INLINE Lanes Sin(Lanes a) {
  if (All(Abs(a) <= Lanes(39000))) return hn::Sin(Floats(), a.v);
  return EachLane<std::sin>(a);
}
HWY_INLINE Lanes Cos(Lanes a) {
  if (All(Abs(a) <= Lanes(39000))) return hn::Cos(Floats(), a.v);
  return EachLane<std::cos>(a);
}
HWY_INLINE Lanes Erf(Lanes a) { return KeepNan(a, Erf(Floats(), a.v)); }

// For x >= 0, erfc(x) = e^(-x^2) g(t) / (1 + 2 x) with t = (x - 3) / (x + 3), where g is smooth: a
// polynomial fitted on [0, 10.2] to 7e-8. The rounding error of x^2, which a fused multiplication
// gives exactly, is corrected for, so that the result is exact to a few units in the last place
// even where it is tiny.
HWY_INLINE Lanes Erfc(Lanes a) {
  const Floats d;
  const Vector x = hn::Min(hn::Abs(a.v), hn::Set(d, 10.2f));
  const Vector three = hn::Set(d, 3.0f);
  const Vector t = hn::Div(hn::Sub(x, three), hn::Add(x, three));
  Vector g = hn::Set(d, 0.0025393397f);
  for (const float c : {0.0022548735f, -0.0242116768f, 0.0682996586f, -0.1191801578f, 0.1296537071f,
                        -0.0475689992f, -0.1356215179f, 1.2530081272f}) {
    g = hn::MulAdd(g, t, hn::Set(d, c));
  }
  const Vector square = hn::Mul(x, x), lost = hn::MulSub(x, x, square);
  const Vector e = WholeExp(d, hn::Neg(square));
  Vector y = hn::Div(hn::Mul(hn::NegMulAdd(e, lost, e), g),
                     hn::MulAdd(x, hn::Set(d, 2.0f), hn::Set(d, 1.0f)));
  y = hn::IfThenElse(hn::Lt(a.v, hn::Zero(d)), hn::Sub(hn::Set(d, 2.0f), y), y);
  return KeepNan(a, y);
}

HWY_INLINE Lanes Tan(Lanes a) {
  const Floats d;
  if (All(Abs(a) <= Lanes(39000))) return hn::Div(hn::Sin(d, a.v), hn::Cos(d, a.v));
  return EachLane<std::tan>(a);
}
HWY_INLINE Lanes Asin(Lanes a) {
  if (All(Abs(a) <= Lanes(1))) return hn::Asin(Floats(), a.v);
  return EachLane<std::asin>(a);
}
HWY_INLINE Lanes Acos(Lanes a) {
  if (All(Abs(a) <= Lanes(1))) return hn::Acos(Floats(), a.v);
  return EachLane<std::acos>(a);
}
HWY_INLINE Lanes Atan(Lanes a) { return hn::Atan(Floats(), a.v); }
HWY_INLINE Lanes Sinh(Lanes a) {
  if (All(Abs(a) <= Lanes(88))) return hn::Sinh(Floats(), a.v);
  return EachLane<std::sinh>(a);
}
HWY_INLINE Lanes Cosh(Lanes a) {
  if (!All(Abs(a) <= Lanes(88))) return EachLane<std::cosh>(a);
  const Lanes e = WholeExp(Floats(), hn::Abs(a.v));
  return Lanes(0.5) * (e + Lanes(1) / e);
}
HWY_INLINE Lanes Asinh(Lanes a) {
  if (All(Abs(a) <= Lanes(1e18))) return hn::Asinh(Floats(), a.v);
  return EachLane<std::asinh>(a);
}
HWY_INLINE Lanes Acosh(Lanes a) {
  if (All(a >= Lanes(1) && a <= Lanes(1e18))) return hn::Acosh(Floats(), a.v);
  return EachLane<std::acosh>(a);
}
HWY_INLINE Lanes Atanh(Lanes a) {
  if (All(Abs(a) < Lanes(1))) return hn::Atanh(Floats(), a.v);
  return EachLane<std::atanh>(a);
}
HWY_INLINE Lanes Atan2(Lanes a, Lanes b) { return EachLane<std::atan2>(a, b); }
HWY_INLINE Lanes Rem(Lanes a, Lanes b) { return EachLane<std::fmod>(a, b); }
// The exponents that models use most are multiplications.
HWY_INLINE Lanes Pow(Lanes a, Lanes b) {
  if (All(b == Lanes(2))) return a * a;
  if (All(b == Lanes(3))) return a * a * a;
  return EachLane<std::pow>(a, b);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
