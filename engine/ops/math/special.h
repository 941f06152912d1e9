// Special functions of floating-point numbers: gamma, zeta, Bessel and normal distributions.
//
// Elementwise with NumPy broadcasting, but not in the table of expressions: code that evaluates
// expressions does not have these functions, and they would gain nothing from fusion with cheap
// ops.
//   one input:  Lgamma Digamma Erfinv Ndtri BesselI0e BesselI1e
//   two inputs: Igamma(a, x) Igammac(a, x) Zeta(x, q) Polygamma(n, x) NextAfter(from, to)
//   three:      Betainc(a, b, x)
// Results are NaN where a function is undefined, and infinite at poles. They have no attributes.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {}  // namespace oncilla
