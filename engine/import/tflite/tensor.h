// Tensors of a TFLite file: their types, and the values of constants.
#pragma once

#include <memory>
#include <string>

#include "engine/import/tflite/reader.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// The type that a number of the schema's TensorType means; kInvalid for one that the engine has
// not. Integers of four and two bits are read as bytes.
DType DTypeFromTflite(int64_t type);
std::string TfliteTypeName(int64_t type);
// Complex numbers are pairs of floats, along a last axis that the file's shapes do not have.
inline constexpr int8_t kTfliteComplex64 = 8;
// Lists of tensors, which TensorFlow's own ops make.
inline constexpr int8_t kTfliteVariant = 14;

// The value of a constant: a view where the file holds it as it is, else (packed integers, strings,
// sparse tensors) decoded. `owner` keeps the file's bytes.
Result<Tensor> TensorFromTflite(const TfliteTensor& tensor,
                                const std::shared_ptr<const void>& owner);

// The integers of this tensor stand for real numbers.
bool IsQuantised(const TfliteTensor& tensor);
// Both tensors' integers stand for the same numbers.
bool SameQuantisation(const TfliteTensor& a, const TfliteTensor& b);

}  // namespace oncilla
