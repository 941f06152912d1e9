// Attributes of random numbers whose distribution has tensors as parameters; they equal those of
// TensorFlow's stateless ops.
#pragma once

#include <string>

#include "engine/ops/op_def.h"

namespace oncilla {

// SampleDistribution(*shape, key u64[1], counter u64[2], parameters..): `shape` ends with the shape
// of the parameters. gamma: alpha; poisson: rate; binomial: number of trials and probability, which
// broadcast; bounded_normal: mean, standard deviation, lower and upper bound, of the type `to`,
// which broadcast.
struct SampleDistributionAttrs {
  std::string distribution = "gamma";
  DType to = DType::kF32;
  void Fields(auto&& field) {
    field("distribution", distribution);
    field("to", to);
  }
};

}  // namespace oncilla
