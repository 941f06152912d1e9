// Sets along the last axis: host functions.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/array/sets.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> SetOperation(const SetOperationAttrs& attrs, const NodeView& node,
                                         std::span<const Tensor> in);
Result<std::vector<Tensor>> SetSize(const SetSizeAttrs& attrs, const NodeView& node,
                                    std::span<const Tensor> in);

}  // namespace oncilla::cpu
