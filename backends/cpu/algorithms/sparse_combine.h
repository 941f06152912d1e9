// Sparse tensors combined, split and reduced: host functions.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/array/sets.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> SparseAdd(const NoAttrs& attrs, const NodeView& node,
                                      std::span<const Tensor> in);
Result<std::vector<Tensor>> SparsePick(const SparsePickAttrs& attrs, const NodeView& node,
                                       std::span<const Tensor> in);
Result<std::vector<Tensor>> SparseLookup(const SparseLookupAttrs& attrs, const NodeView& node,
                                         std::span<const Tensor> in);
Result<std::vector<Tensor>> SparseSplit(const SparseSplitAttrs& attrs, const NodeView& node,
                                        std::span<const Tensor> in);
Result<std::vector<Tensor>> SparseReduce(const SparseReduceAttrs& attrs, const NodeView& node,
                                         std::span<const Tensor> in);

}  // namespace oncilla::cpu
