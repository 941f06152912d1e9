// SequenceExample messages to tensors: a host function.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/data/messages.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> ParseSequences(const ParseSequencesAttrs& attrs, const NodeView& node,
                                           std::span<const Tensor> in);

}  // namespace oncilla::cpu
