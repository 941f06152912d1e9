// Tensors of random numbers, the same bytes on every machine for the same seed, name and desc:
// floats uniform in [0, 1), integers uniform in 0..9, bools even.
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014) started from the seed and the input's name,
// so that adding an input does not change the others. No floating-point rounding takes part: a
// float is an integer with as many bits as its mantissa holds, scaled by a power of two.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/tensor/tensor.h"

namespace oncilla::tool {

// Unimplemented for strings.
Result<Tensor> RandomTensor(uint64_t seed, std::string_view name, const TensorDesc& desc);

}  // namespace oncilla::tool
