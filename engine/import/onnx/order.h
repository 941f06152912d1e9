// The order in which the nodes of a graph of the file are lowered.
#pragma once

#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/import/onnx/reader.h"

namespace oncilla {

using OnnxNames = std::unordered_set<std::string_view>;

// The nodes that the wanted tensors need, each after what it or its graphs read. Names in `known`
// need no node; those in `given`, the graph's own inputs and constants, may have none. DataLoss for
// cycles and for tensors that are computed twice.
Result<std::vector<size_t>> OrderOnnxNodes(std::span<const OnnxNode> nodes,
                                           std::span<const std::string_view> wanted,
                                           const OnnxNames& known, const OnnxNames& given);

}  // namespace oncilla
