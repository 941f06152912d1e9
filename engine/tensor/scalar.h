// Scalars: as a tensor of any dtype; the limits of integer types.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

// A tensor of rank 0. Rounds for floats, truncates for integers. Unimplemented for types that are
// not numbers, InvalidArgument for a number out of the integer type's range.
Result<Tensor> ScalarOf(DType dtype, double value);

struct IntegerLimits {
  int64_t least = 0, most = 0;
};
// The limits of an integer type of 8 to 32 bits.
IntegerLimits LimitsOf(DType dtype);

}  // namespace oncilla
