// Which nodes of an ONNX graph the engine can run, each judged by itself.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {

// One judgement for each node of the main graph, in the order of the file. Nodes are lowered as an
// import would lower them; where one fails, its outputs become inputs with what the file states of
// them (`stated`, by name), so that the nodes behind it are judged too. Fails as a whole only where
// the graph has no order, or an input has no type.
Result<std::vector<NodeJudgement>> JudgeOnnxNodes(
    const OnnxModel& model, const std::vector<TensorInfo>& inputs,
    const std::unordered_map<std::string_view, TensorInfo>& stated, const OnnxContext& context,
    const std::shared_ptr<const OpSet>& ops);

}  // namespace oncilla
