// The functions that elementwise_table.inc uses, as scalar C++: double for floating-point types,
// and a 64-bit integer for which every operation is defined (it wraps; division by zero and
// excessive shifts have results). Narrower integers are computed in 64 bits and truncated when
// stored.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace oncilla::cpu::scalar {

template <class T>
struct Int {
  using Unsigned = std::make_unsigned_t<T>;
  T v;

  Int() = default;
  constexpr Int(T value) : v(value) {}  // NOLINT: a number is a number
  template <class U>
  static constexpr Int Wrap(U u) {
    return Int(static_cast<T>(u));
  }
  constexpr Unsigned u() const { return static_cast<Unsigned>(v); }

  friend Int operator+(Int a, Int b) { return Wrap(a.u() + b.u()); }
  friend Int operator-(Int a, Int b) { return Wrap(a.u() - b.u()); }
  friend Int operator*(Int a, Int b) { return Wrap(a.u() * b.u()); }
  friend Int operator-(Int a) { return Wrap(Unsigned{0} - a.u()); }
  friend Int operator~(Int a) { return Wrap(~a.u()); }
  friend Int operator&(Int a, Int b) { return Wrap(a.u() & b.u()); }
  friend Int operator|(Int a, Int b) { return Wrap(a.u() | b.u()); }
  friend Int operator^(Int a, Int b) { return Wrap(a.u() ^ b.u()); }
  friend bool operator==(Int a, Int b) { return a.v == b.v; }
  friend bool operator!=(Int a, Int b) { return a.v != b.v; }
  friend bool operator<(Int a, Int b) { return a.v < b.v; }
  friend bool operator<=(Int a, Int b) { return a.v <= b.v; }
  friend bool operator>(Int a, Int b) { return a.v > b.v; }
  friend bool operator>=(Int a, Int b) { return a.v >= b.v; }
};

template <class T>
T Select(bool condition, T a, T b) {
  return condition ? a : b;
}

// Truncating. A zero divisor, which fails the run elsewhere, gives 0; the lowest number over -1
// wraps.
template <class T>
Int<T> Div(Int<T> a, Int<T> b) {
  if (b.v == 0) return Int<T>(0);
  if (std::is_signed_v<T> && b.u() + 1 == 0) return -a;
  return Int<T>::Wrap(a.v / b.v);
}
template <class T>
Int<T> Rem(Int<T> a, Int<T> b) {
  if (b.v == 0 || (std::is_signed_v<T> && b.u() + 1 == 0)) return Int<T>(0);
  return Int<T>::Wrap(a.v % b.v);
}
template <class T>
Int<T> Shl(Int<T> a, Int<T> b) {
  return b.u() < 64 ? Int<T>::Wrap(a.u() << b.u()) : Int<T>(0);
}
// Signed numbers are shifted arithmetically.
template <class T>
Int<T> Shr(Int<T> a, Int<T> b) {
  if (b.u() >= 64) return std::is_signed_v<T> && (a.u() >> 63) != 0 ? ~Int<T>(0) : Int<T>(0);
  return Int<T>::Wrap(a.v >> b.u());
}
// Exact, modulo 2^64. A negative exponent gives the truncated quotient: 0, or a power of -1 or 1.
template <class T>
Int<T> Pow(Int<T> a, Int<T> b) {
  if (std::is_signed_v<T> && b.v < Int<T>(0).v) {
    if (a.v == 1) return a;
    return a.u() + 1 == 0 ? ((b.u() & 1) != 0 ? a : Int<T>(1)) : Int<T>(0);
  }
  Int<T> result(1);
  for (auto n = b.u(); n != 0; n >>= 1, a = a * a) {
    if ((n & 1) != 0) result = result * a;
  }
  return result;
}
template <class T>
Int<T> Abs(Int<T> a) {
  return std::is_signed_v<T> && a.v < Int<T>(0).v ? -a : a;
}
template <class T>
Int<T> Min(Int<T> a, Int<T> b) {
  return b < a ? b : a;
}
template <class T>
Int<T> Max(Int<T> a, Int<T> b) {
  return b > a ? b : a;
}

// A NaN operand gives NaN.
inline double Min(double a, double b) { return a != a || a < b ? a : b; }
inline double Max(double a, double b) { return a != a || a > b ? a : b; }
inline double Rem(double a, double b) { return std::fmod(a, b); }
inline double Pow(double a, double b) { return std::pow(a, b); }
// x * y + z, rounded once.
inline double Fma(double a, double b, double c) { return std::fma(a, b, c); }
inline double Atan2(double a, double b) { return std::atan2(a, b); }
inline double Abs(double a) { return std::fabs(a); }
inline double Floor(double a) { return std::floor(a); }
inline double Ceil(double a) { return std::ceil(a); }
inline double Round(double a) { return std::nearbyint(a); }
inline double Sqrt(double a) { return std::sqrt(a); }
inline double Exp(double a) { return std::exp(a); }
inline double Expm1(double a) { return std::expm1(a); }
inline double Log(double a) { return std::log(a); }
inline double Log1p(double a) { return std::log1p(a); }
inline double Sin(double a) { return std::sin(a); }
inline double Cos(double a) { return std::cos(a); }
inline double Tan(double a) { return std::tan(a); }
inline double Asin(double a) { return std::asin(a); }
inline double Acos(double a) { return std::acos(a); }
inline double Atan(double a) { return std::atan(a); }
inline double Sinh(double a) { return std::sinh(a); }
inline double Cosh(double a) { return std::cosh(a); }
inline double Tanh(double a) { return std::tanh(a); }
inline double Asinh(double a) { return std::asinh(a); }
inline double Acosh(double a) { return std::acosh(a); }
inline double Atanh(double a) { return std::atanh(a); }
inline double Erf(double a) { return std::erf(a); }
inline double Erfc(double a) { return std::erfc(a); }

}  // namespace oncilla::cpu::scalar
