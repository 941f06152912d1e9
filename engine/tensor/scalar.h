// A number as a tensor of any dtype.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

// Of rank 0. Rounded for floats, towards zero for integers. Unimplemented for what holds no
// numbers, InvalidArgument for one that the integer type does not hold.
Result<Tensor> ScalarOf(DType dtype, double value);

}  // namespace oncilla
