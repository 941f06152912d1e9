// What ops on quantised tensors have in common.
#pragma once

#include <vector>

#include "engine/import/tflite/lowering.h"

namespace oncilla {

// DataLoss if a tensor's scales are inconsistent, Unimplemented for other kinds of quantisation.
Status CheckTfliteScales(const TfliteTensor& tensor, bool zero_too = false);

// Scale, its inverse and zero point of a tensor that was checked, as f32 that broadcasts along it.
struct TfliteParameters {
  ValueId scale = kNoValue, per_scale = kNoValue, zero = kNoValue;
};
Result<TfliteParameters> TfliteParametersOf(TfliteLowering& b, const TfliteTensor& tensor);
// A vector along `axis` of a tensor of this rank; a single number unchanged.
Result<ValueId> TfliteAlong(TfliteLowering& b, Tensor numbers, int32_t axis, int rank);

// The range of an integer type.
struct TfliteIntegers {
  double least = 0, most = 0;
};
Result<TfliteIntegers> TfliteIntegersOf(DType dtype);

// A real factor in the form of TFLite's fixed-point ops: multiplier * 2^(shift - 31).
struct TfliteFixedPoint {
  int32_t multiplier = 0, shift = 0;
};
Result<TfliteFixedPoint> TfliteFixedPointOf(double factor);

// The range of integers that an activation allows for a tensor.
Result<TfliteIntegers> TfliteActivated(const TfliteTensor& output, DType dtype, int64_t activation);

int64_t TfliteZeroOf(const TfliteTensor& tensor);

// x multiplied by factors (one, or one per index of the last axis) in fixed point, with the
// rounding of LiteRT's reference kernels; its faster kernels differ from them, and from each other,
// by one step in a thousandth of the elements. `attrs` has the op's attributes other than mode and
// type.
Result<ValueId> TfliteFixed(TfliteLowering& b, ValueId x, const std::vector<double>& factors,
                            RequantizeAttrs attrs, DType to, int64_t zero, std::string_view role);

// The same with factors that are already in fixed point.
Result<ValueId> TfliteFixedBy(TfliteLowering& b, ValueId x,
                              const std::vector<TfliteFixedPoint>& factors, RequantizeAttrs attrs,
                              DType to, int64_t zero, std::string_view role);

// Sums of products as the integers of the output, clipped to the range that the activation allows.
Result<ValueId> TfliteRequantised(TfliteLowering& b, ValueId sums,
                                  const std::vector<double>& factors, int64_t activation);
// Bytes `x`, which are rows of input i, as the real numbers that they represent by scales of
// blocks: those of all rows, or of the rows `of`.
Result<ValueId> TfliteBlocksDequantised(TfliteLowering& b, size_t i, ValueId x, ValueId of,
                                        std::string_view role);
// Input i, of u8, i8 or i16, as the real numbers that it represents, of type `to`.
Result<ValueId> TfliteDequantised(TfliteLowering& b, size_t i, DType to, std::string_view role);
// Input i in 32 bits (or 64), minus its zero point.
Result<ValueId> TfliteMoved(TfliteLowering& b, size_t i, DType to = DType::kI32);
// The zero point of input i as a constant of its type; kNoValue if it is 0.
Result<ValueId> TfliteZero(TfliteLowering& b, size_t i);
// Checks that x and the output have one type of u8, i8 and i16, their weights the type that goes
// with it, and the bias is an integer. Weights of i8 have the zero point 0, or with `any_zero` any
// one if they have one scale.
Status CheckTfliteProduct(const TfliteLowering& b, size_t x, size_t weights, size_t bias,
                          bool any_zero = false);
// Checks that inputs up to `count` and the output are quantised to one type, u8 or i8, with one
// scale each.
Status CheckTfliteBytes(const TfliteLowering& b, size_t count);
// The same, or i16 with zero points of 0.
Status CheckTfliteIntegers(const TfliteLowering& b, size_t count);
// The factors from sums of products of x and weights to the output's steps. LiteRT multiplies a
// single scale of weights in float (`in_float`), those of channels in double.
std::vector<double> TfliteFactors(const TfliteLowering& b, size_t x, size_t weights, bool in_float);

}  // namespace oncilla
