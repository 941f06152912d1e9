// Tensors serialized as bytes: host functions.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/data/messages.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> ParseTensor(const ParseTensorAttrs& attrs, const NodeView& node,
                                        std::span<const Tensor> in);
Result<std::vector<Tensor>> SerializeTensor(const NoAttrs& attrs, const NodeView& node,
                                            std::span<const Tensor> in);
Result<std::vector<Tensor>> Decompress(const DecompressAttrs& attrs, const NodeView& node,
                                       std::span<const Tensor> in);
Result<std::vector<Tensor>> Fingerprint(const NoAttrs& attrs, const NodeView& node,
                                        std::span<const Tensor> in);

}  // namespace oncilla::cpu
