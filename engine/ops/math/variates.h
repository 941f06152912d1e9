// Attributes of random numbers whose distribution has parameters as tensors, after TensorFlow's
// stateless ops, number by number.
#pragma once

#include <string>

#include "engine/ops/op_def.h"

namespace oncilla {

// SampleDistribution(*shape, key u64[1], counter u64[2], parameters..): the parameters have the
// shape that `shape` ends on. gamma: its alpha; poisson: its rate; binomial: how many trials and
// how likely each is, which broadcast.
struct SampleDistributionAttrs {
  std::string distribution = "gamma";
  DType to = DType::kF32;
  void Fields(auto&& field) {
    field("distribution", distribution);
    field("to", to);
  }
};

}  // namespace oncilla
