// Special functions in double, with a relative error of about 1e-13 away from their zeros. They
// return NaN outside their domains, and infinity at poles.
#pragma once

namespace oncilla::cpu {

double LogGamma(double x);
double Digamma(double x);
// The inverse of erf on [-1, 1].
double ErfInverse(double x);
// The inverse of the normal distribution on [0, 1].
double NormalQuantile(double p);
// exp(-|x|) times the modified Bessel function of order 0 or 1.
double ScaledBesselI0(double x);
double ScaledBesselI1(double x);
// The lower regularised incomplete gamma function, and one minus it.
double LowerGamma(double a, double x);
double UpperGamma(double a, double x);
// Hurwitz' zeta function for x > 1.
double HurwitzZeta(double x, double q);
// The n-th derivative of Digamma.
double Polygamma(double n, double x);
// The regularised incomplete beta function.
double IncompleteBeta(double a, double b, double x);

}  // namespace oncilla::cpu
