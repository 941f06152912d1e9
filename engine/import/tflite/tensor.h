// Tensors of a TFLite file: their types, and the values of constants.
#pragma once

#include <memory>
#include <string>

#include "engine/import/tflite/reader.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// The dtype for a number of the schema's TensorType; kInvalid for a type that the engine does not
// have. Integers of four and two bits are read as bytes.
DType DTypeFromTflite(int64_t type);
std::string TfliteTypeName(int64_t type);
// Complex numbers are pairs of floats, along a last axis that the file's shapes do not have.
inline constexpr int8_t kTfliteComplex64 = 8;
// Lists of tensors, which TensorFlow's own ops return.
inline constexpr int8_t kTfliteVariant = 14;

// The value of a constant: a view if the file contains it in our form, else (packed integers,
// strings, sparse tensors) decoded. `owner` keeps the file's bytes alive.
Result<Tensor> TensorFromTflite(const TfliteTensor& tensor,
                                const std::shared_ptr<const void>& owner);

// Whether the integers of this tensor represent real numbers.
bool IsQuantised(const TfliteTensor& tensor);
// Whether the integers of both tensors represent the same numbers.
bool SameQuantisation(const TfliteTensor& a, const TfliteTensor& b);

}  // namespace oncilla
