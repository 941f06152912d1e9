// Stores 32-bit floats in 16 bits: as float16 or bfloat16, rounded to nearest even.
#pragma once

#include "engine/tensor/tensor.h"

namespace oncilla {

struct Narrowing {
  Tensor tensor;              // invalid when a finite number would become infinite
  double largest = 0;         // of the finite numbers, by magnitude
  double relative_error = 0;  // the largest, of numbers other than zero; 1 where one became zero
};

// `dtype` is kF16 or kBF16. Fails only for lack of memory. The bytes may be unaligned.
Result<Narrowing> Narrowed(const Tensor& f32, DType dtype);

}  // namespace oncilla
