// Prefix search for connectionist temporal classification, one sample at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/ops/nn/sequence.h"

namespace oncilla::cpu {

struct CtcPath {
  std::vector<int64_t> classes;
  double chance = 0;  // the logarithm of its probability
};

// The best paths of `steps` steps, with `logits(t)` for each. InvalidArgument for NaN, and if fewer
// prefixes than paths are left.
Result<std::vector<CtcPath>> SearchCtcBeam(
    const CtcBeamAttrs& attrs, int64_t steps,
    const std::function<std::span<const double>(int64_t)>& logits);

}  // namespace oncilla::cpu
