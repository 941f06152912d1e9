// Single numbers: as a tensor of any dtype, and what an integer type holds.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

// Of rank 0. Rounded for floats, towards zero for integers. Unimplemented for what holds no
// numbers, InvalidArgument for one that the integer type does not hold.
Result<Tensor> ScalarOf(DType dtype, double value);

struct IntegerLimits {
  int64_t least = 0, most = 0;
};
// Of an integer type of 8 to 32 bits.
IntegerLimits LimitsOf(DType dtype);

}  // namespace oncilla
