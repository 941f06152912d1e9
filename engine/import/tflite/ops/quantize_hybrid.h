// Products of real numbers with weights that are stored as 8-bit (or 4-bit) integers, called
// dynamic range or hybrid: LiteRT quantises the real operand at run time, with a scale for each set
// of rows, sums products of integers, and scales the sums back.
#pragma once

#include "engine/import/tflite/ops/quantize.h"

namespace oncilla {

// Real numbers as integers: x = (bytes - 128 - zero) * scale, with bytes of u8, and scale and zero
// (f32, whole numbers; kNoValue if it is 0) broadcasting along x.
struct TfliteBytes {
  ValueId bytes = kNoValue, scale = kNoValue, zero = kNoValue;
};
// One scale for the elements along `axes`: so that the largest magnitude becomes 127, or,
// asymmetric, so that the range of the numbers and 0 uses all bytes. Ties are rounded away from
// zero.
Result<TfliteBytes> TfliteQuantiseRows(TfliteLowering& b, ValueId x, std::vector<int64_t> axes,
                                       bool asymmetric);

// Whether x is f32 and input `weights` quantised to i8; and a check of the latter.
bool IsTfliteHybrid(const TfliteLowering& b, size_t x, size_t weights);
Status CheckTfliteHybrid(const TfliteLowering& b, size_t weights);
// The product of x and input `weights`, and the convolution of input 0 with a filter in the
// canonical layout that was made from input 1, with a bias of f32 or kNoValue.
Result<Values> TfliteHybridProduct(TfliteLowering& b, ValueId x, const MatMulIntegerAttrs& attrs,
                                   ValueId bias, bool asymmetric, int64_t activation,
                                   std::string_view role = "");
Result<Values> TfliteHybridConv(TfliteLowering& b, const ConvIntegerAttrs& attrs, ValueId filter,
                                ValueId bias, bool asymmetric, int64_t activation);
// The transposed convolution of input 2 with the filter of input 1, whose sums are computed in
// float.
Result<Values> TfliteHybridConvTranspose(TfliteLowering& b, const ConvTransposeAttrs& attrs,
                                         ValueId sizes, ValueId bias, int64_t activation);

}  // namespace oncilla
