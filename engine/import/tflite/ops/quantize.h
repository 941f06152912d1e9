// What ops on quantised tensors have alike.
#pragma once

#include <vector>

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// DataLoss where a tensor's scales do not belong together, Unimplemented for other kinds.
Status CheckTfliteScales(const TfliteTensor& tensor);

// Scale, its inverse and zero point of a tensor that was checked, as f32 that stretches along it.
struct TfliteParameters {
  ValueId scale = kNoValue, per_scale = kNoValue, zero = kNoValue;
};
Result<TfliteParameters> TfliteParametersOf(TfliteLowering& b, const TfliteTensor& tensor);
// A vector along `axis` of a tensor of this rank; one number as it is.
Result<ValueId> TfliteAlong(TfliteLowering& b, Tensor numbers, int32_t axis, int rank);

// The range of an integer type.
struct TfliteIntegers {
  double least = 0, most = 0;
};
Result<TfliteIntegers> TfliteIntegersOf(DType dtype);

// A real factor as TFLite's fixed-point ops have it: multiplier * 2^(shift - 31).
struct TfliteFixedPoint {
  int32_t multiplier = 0, shift = 0;
};
Result<TfliteFixedPoint> TfliteFixedPointOf(double factor);

// The integers between which an activation leaves a tensor.
Result<TfliteIntegers> TfliteActivated(const TfliteTensor& output, DType dtype, int64_t activation);

int64_t TfliteZeroOf(const TfliteTensor& tensor);

// x by factors (one, or one for each place of the last axis) in fixed point, by the rounding of
// LiteRT's reference kernels; its faster ones differ from them, and from each other, by one step in
// a thousandth of the elements. `attrs` has the op's attributes other than mode and type.
Result<ValueId> TfliteFixed(TfliteLowering& b, ValueId x, const std::vector<double>& factors,
                            RequantizeAttrs attrs, DType to, int64_t zero, std::string_view role);

// The same with factors that are fixed points already.
Result<ValueId> TfliteFixedBy(TfliteLowering& b, ValueId x,
                              const std::vector<TfliteFixedPoint>& factors, RequantizeAttrs attrs,
                              DType to, int64_t zero, std::string_view role);

// Sums of products as the integers of the output, cut to the range that the activation leaves.
Result<ValueId> TfliteRequantised(TfliteLowering& b, ValueId sums,
                                  const std::vector<double>& factors, int64_t activation);
// Input i, of u8, i8 or i16, as the real numbers that it stands for, of type `to`.
Result<ValueId> TfliteDequantised(TfliteLowering& b, size_t i, DType to, std::string_view role);
// Input i in 32 bits (or 64), less its zero point.
Result<ValueId> TfliteMoved(TfliteLowering& b, size_t i, DType to = DType::kI32);
// The zero point of input i as a constant of its type; kNoValue where it is 0.
Result<ValueId> TfliteZero(TfliteLowering& b, size_t i);
// Whether x and the output are of one type of u8, i8 and i16, their weights as that type has them,
// and the bias an integer.
Status CheckTfliteProduct(const TfliteLowering& b, size_t x, size_t weights, size_t bias);
// Whether inputs up to `count` and the output are quantised to one type, u8 or i8, by one scale
// each.
Status CheckTfliteBytes(const TfliteLowering& b, size_t count);
// The same, or i16 with zero points of 0.
Status CheckTfliteIntegers(const TfliteLowering& b, size_t count);
// The factors from sums of products of x and weights to the output's steps. LiteRT multiplies one
// scale of weights in float (`in_float`), those of channels in double.
std::vector<double> TfliteFactors(const TfliteLowering& b, size_t x, size_t weights, bool in_float);

}  // namespace oncilla
