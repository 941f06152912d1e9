// The first elements of a tensor as text, as TensorFlow formats them in the messages of Assert and
// Print: "1 2 3..." for a vector, "[1 2][3 4]..." for a matrix.
#pragma once

#include <string>

#include "engine/tensor/tensor.h"

namespace oncilla::cpu {

// At most `most` elements; all of them when it is negative.
std::string SummaryOf(const Tensor& tensor, int64_t most);

}  // namespace oncilla::cpu
