// Attributes of the normalisation family, shared by inference and kernels.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x -> exp(x - max) / sum over one axis, or its logarithm.
struct SoftmaxAttrs {
  int64_t axis = -1;
  bool log = false;
  void Fields(auto&& field) {
    field("axis", axis);
    field("log", log);
  }
};

std::span<const OpDef> NormOps();

}  // namespace oncilla
