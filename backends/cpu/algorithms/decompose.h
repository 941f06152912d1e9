// Decompositions of matrices by Eigen's algorithms, in double, one matrix at a time.
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/ops/math/decompose.h"

namespace oncilla::cpu {

Status Qr(const QrAttrs& attrs, const Args& args);
Status Svd(const SvdAttrs& attrs, const Args& args);
Status SymmetricEigen(const SymmetricEigenAttrs& attrs, const Args& args);
Status MatrixSquareRoot(const NoAttrs& attrs, const Args& args);
Status MatrixExponential(const MatrixExponentialAttrs& attrs, const Args& args);
Status MatrixLogarithm(const NoAttrs& attrs, const Args& args);
Status DecomposeComplex(const DecomposeComplexAttrs& attrs, const Args& args);

}  // namespace oncilla::cpu
