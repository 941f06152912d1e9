// Special functions by their textbook series, continued fractions and recurrences (Abramowitz and
// Stegun, chapters 6, 7, 9, 23, 26); inverses by Halley's method on the function itself.
#include "backends/cpu/algorithms/special_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oncilla::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = 3.14159265358979323846;

// The Bernoulli numbers B(2k) from B(2) on, for the asymptotic series.
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330};

// x^a exp(-x) / Gamma(a), a factor of both expansions of the incomplete gamma function.
double GammaFactor(double a, double x) { return std::exp(a * std::log(x) - x - LogGamma(a)); }

double LowerSeries(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 100000 && std::fabs(term) > std::fabs(sum) * kEpsilon / 4; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * GammaFactor(a, x);
}

// The continued fraction of the upper incomplete gamma function by Lentz' method, with guards
// against division by zero.
double UpperFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / (b == 0 ? kTiny : b), h = d;
  for (int n = 1; n < 100000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::fabs(step - 1) <= kEpsilon) break;
  }
  return h * GammaFactor(a, x);
}

// The continued fraction of the incomplete beta function, by the same method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  auto guard = [](double v) { return std::fabs(v) < 1e-300 ? 1e-300 : v; };
  double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < 100000; ++m) {
    const double m2 = 2.0 * m;
    const double even = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    const double step = d * c;
    h *= step;
    if (std::fabs(step - 1) <= kEpsilon) break;
  }
  return std::max(h, kTiny);
}

// The root z >= 0 of erfc(z) = y for y in (0, 1].
double ErfcInverse(double y) {
  // Winitzki's approximation is near enough that a few of Halley's steps reach full precision.
  const double l = std::log(y) + std::log(2 - y);
  const double u = 2 / (kPi * 0.147) + l / 2;
  double z = std::sqrt(std::max(0.0, std::sqrt(u * u - l / 0.147) - u));
  for (int i = 0; i < 6; ++i) {
    const double slope = -2 / std::sqrt(kPi) * std::exp(-z * z);
    const double error = std::erfc(z) - y;
    if (slope == 0 || error == 0) break;
    const double newton = error / slope;
    const double step = newton / (1 + newton * z);
    z -= step;
    if (std::fabs(step) <= kEpsilon * std::fabs(z)) break;
  }
  return z;
}

// The series of (x/2)^(2k+order) / (k! (k+order)!), times exp(-x). All terms are positive, so
// nothing cancels.
double BesselSeries(double x, int order) {
  const double square = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 1000 && term > sum * kEpsilon / 8; ++k) {
    term *= square / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum * std::exp(-x);
}

// The asymptotic series for large x, for which it reaches full precision before it begins to
// diverge.
double BesselAsymptotic(double x, int order) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2.0 * k - 1;
    const double next = -term * (mu - odd * odd) / (k * 8 * x);
    if (std::fabs(next) > std::fabs(term) || std::fabs(next) < kEpsilon / 8) break;
    term = next;
    sum += term;
  }
  return sum / std::sqrt(2 * kPi * x);
}

double ScaledBessel(double x, int order) {
  if (x != x) return x;
  if (std::isinf(x)) return 0;
  return x < 40 ? BesselSeries(x, order) : BesselAsymptotic(x, order);
}

}  // namespace

double LogGamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (x != x || x == -kInfinity) return kNaN;
  if (x == kInfinity) return x;
  double result = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return kNaN;
    // The reflection formula. x is reduced by the nearest integer first, so that neither large x
    // nor those near to a pole lose digits.
    const double part = x - std::nearbyint(x);
    result = -kPi / std::tan(kPi * part);
    x = 1 - x;
  }
  for (; x < 12; x += 1) result -= 1 / x;
  const double inverse = 1 / (x * x);
  double power = inverse, sum = 0;
  for (int k = 0; k < 8; ++k, power *= inverse) sum += kBernoulli[k] / (2.0 * (k + 1)) * power;
  return result + std::log(x) - 0.5 / x - sum;
}

double ErfInverse(double x) {
  if (!(x >= -1 && x <= 1)) return kNaN;
  const double size = std::fabs(x);
  if (size == 1) return x * kInfinity;
  double z;
  if (size < 0.5) {
    // Solved for erf itself, because 1 - size would lose the digits of small numbers.
    z = size * std::sqrt(kPi) / 2;
    for (int i = 0; i < 8; ++i) {
      const double newton = (std::erf(z) - size) / (2 / std::sqrt(kPi) * std::exp(-z * z));
      z -= newton / (1 + newton * z);
    }
  } else {
    z = ErfcInverse(1 - size);
  }
  return std::copysign(z, x);
}

double NormalQuantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNaN;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  const double root2 = std::sqrt(2.0);
  if (p > 0.25 && p < 0.75) return root2 * ErfInverse(2 * p - 1);
  return p < 0.5 ? -root2 * ErfcInverse(2 * p) : root2 * ErfcInverse(2 * (1 - p));
}

double ScaledBesselI0(double x) { return ScaledBessel(std::fabs(x), 0); }
double ScaledBesselI1(double x) { return std::copysign(ScaledBessel(std::fabs(x), 1), x); }

double LowerGamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return kNaN;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? LowerSeries(a, x) : 1 - UpperFraction(a, x);
}

double UpperGamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return kNaN;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - LowerSeries(a, x) : UpperFraction(a, x);
}

// The Euler-Maclaurin formula: the first terms are summed, the rest is an integral with
// corrections.
double HurwitzZeta(double x, double q) {
  if (x != x || q != q || x < 1) return kNaN;
  if (x == 1) return kInfinity;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNaN;  // a power of a negative number
    if (q < -1e6) return kNaN;            // would take more than a million terms
  }
  double sum = 0, at = q;
  for (int n = 0; n < 12 || at < 12; ++n, at += 1) {
    const double term = std::pow(at, -x);
    sum += term;
    if (at > 0 && std::fabs(term) < std::fabs(sum) * 1e-17) return sum;
  }
  sum += std::pow(at, 1 - x) / (x - 1) + 0.5 * std::pow(at, -x);
  double factor = x, power = std::pow(at, -x - 1), factorial = 2;
  for (int k = 0; k < 10; ++k) {
    const double term = kBernoulli[k] / factorial * factor * power;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-17) break;
    const double j = 2.0 * k;
    factor *= (x + j + 1) * (x + j + 2);
    factorial *= (j + 3) * (j + 4);
    power /= at * at;
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNaN;
  if (n == 0) return Digamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(LogGamma(n + 1)) * HurwitzZeta(n + 1, x);
}

double IncompleteBeta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return kNaN;
  if (x == 0 || x == 1) return x;
  const double factor =
      std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * BetaFraction(a, b, x) / a;
  return 1 - factor * BetaFraction(b, a, 1 - x) / b;
}

}  // namespace oncilla::cpu
