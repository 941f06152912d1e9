// Combinations of features: a host function.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/array/sets.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> FeatureCross(const FeatureCrossAttrs& attrs, const NodeView& node,
                                         std::span<const Tensor> in);

}  // namespace oncilla::cpu
