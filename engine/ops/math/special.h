// Special functions of floating-point numbers: gamma, zeta, Bessel and normal distributions.
//
// Elementwise with NumPy broadcasting, but no rows of the table of expressions: nothing that runs
// expressions has them, and no chain of cheap ops around them would gain from fusion.
//   one input:  Lgamma Digamma Erfinv Ndtri BesselI0e BesselI1e
//   two inputs: Igamma(a, x) Igammac(a, x) Zeta(x, q) Polygamma(n, x) NextAfter(from, to)
//   three:      Betainc(a, b, x)
// Results where a function is not defined are NaN, at poles infinite. They have no attributes.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

}  // namespace oncilla
