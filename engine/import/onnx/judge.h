// Finds out which nodes of an ONNX graph the engine supports, each independently.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {

// One result for each node of the main graph, in the order of the file. Nodes are lowered as in an
// import; if one fails, its outputs become inputs with the types that the file states (`stated`, by
// name), so that later nodes are checked too. Fails as a whole only if the graph has no valid
// order, or an input has no type.
Result<std::vector<NodeJudgement>> JudgeOnnxNodes(
    const OnnxModel& model, const std::vector<TensorInfo>& inputs,
    const std::unordered_map<std::string_view, TensorInfo>& stated, const OnnxContext& context,
    const std::shared_ptr<const OpSet>& ops);

}  // namespace oncilla
