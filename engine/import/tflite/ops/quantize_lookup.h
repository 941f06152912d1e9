// Functions of one stored integer of 8 or 16 bits as tables, which hold the result for each of
// them. They depend on scales and zero points alone, so they are made while importing.
#pragma once

#include <functional>

#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {

// From a stored integer to what is stored of the result, in any range.
using TfliteStored = std::function<int64_t(int64_t)>;

// The table of f over all integers of type `from`, by their bits, cut to the range of `to`.
Result<Tensor> TfliteTableOf(DType from, DType to, const TfliteStored& f);
// table[x], the bits of x taken as a number without a sign.
Result<ValueId> TfliteLookup(TfliteLowering& b, ValueId x, Tensor table, std::string_view role);

// The op's output is f of its first input, both of one type of u8, i8 and i16 and of one scale.
Result<Values> TfliteTabulated(TfliteLowering& b, const TfliteStored& f);
// The same of real numbers, by the rules of LiteRT's tables: of bytes every number is computed in
// float, of 16 bits every 128th, and what lies between is interpolated.
Result<Values> TfliteTabulatedReal(TfliteLowering& b, const std::function<float(float)>& f);

// f(x) in 16-bit steps, x and f(x) being real = scale * (stored - zero): 513 samples, interpolated.
template <class Real>
std::vector<int16_t> TfliteSamples(Real x_scale, int32_t x_zero, Real scale, int32_t zero,
                                   const std::function<Real(Real)>& f);
int64_t TfliteInterpolated(const std::vector<int16_t>& samples, int64_t x);

// LiteRT fails the run where an element of input i stands for a number below zero, or for zero. So
// does this, where such an element can be stored.
Status TfliteRequireNotNegative(TfliteLowering& b, size_t i);
Status TfliteRequireNotZero(TfliteLowering& b, size_t i);

}  // namespace oncilla
