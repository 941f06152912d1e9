// Functions of one stored integer of 8 or 16 bits as tables with the result for each integer. They
// depend on scales and zero points alone, so they are computed at import.
#pragma once

#include <functional>

#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {

// Maps a stored integer to the stored result, in any range.
using TfliteStored = std::function<int64_t(int64_t)>;

// The table of f over all integers of type `from`, indexed by their bits, saturated to the range of
// `to`.
Result<Tensor> TfliteTableOf(DType from, DType to, const TfliteStored& f);
// table[x], with the bits of x taken as an unsigned number.
Result<ValueId> TfliteLookup(TfliteLowering& b, ValueId x, Tensor table, std::string_view role);

// Lowers an op whose output is f of its first input, both of one type of u8, i8 and i16 and with
// one scale.
Result<Values> TfliteTabulated(TfliteLowering& b, const TfliteStored& f);
// The same for a function of real numbers, by the rules of LiteRT's tables: for bytes every result
// is computed in float, for 16 bits every 128th, and those between are interpolated.
Result<Values> TfliteTabulatedReal(TfliteLowering& b, const std::function<float(float)>& f);

// f(x) in 16-bit steps, x and f(x) being real = scale * (stored - zero): 513 samples, interpolated.
template <class Real>
std::vector<int16_t> TfliteSamples(Real x_scale, int32_t x_zero, Real scale, int32_t zero,
                                   const std::function<Real(Real)>& f);
int64_t TfliteInterpolated(const std::vector<int16_t>& samples, int64_t x);

// LiteRT fails the run if an element of input i represents a number below zero, or zero. These do
// the same, if such an element can be stored.
Status TfliteRequireNotNegative(TfliteLowering& b, size_t i);
Status TfliteRequireNotZero(TfliteLowering& b, size_t i);

}  // namespace oncilla
