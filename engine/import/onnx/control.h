// Lowering of nodes that hold graphs: branches and loops. Their graphs become functions of the
// Module; what these read of the graphs around them, their captures, become arguments.
#pragma once

#include "engine/import/onnx/builder.h"

namespace oncilla {

// If, Loop, Scan and SequenceMap of ai.onnx, FlexAttention of ai.onnx.preview with graphs, and
// AttnLSTM of com.microsoft, which is a loop here.
bool IsOnnxControl(const OnnxNode& node);

// One of those, in the builder's scope. `inputs` are kNoValue where none is given.
Result<Values> LowerOnnxControl(OnnxBuilder& builder, const OnnxNode& node, int64_t version,
                                Values inputs);

Result<Values> LowerOnnxFlexAttention(OnnxBuilder& builder, OnnxLowering& b);
Result<Values> LowerOnnxAttnLstm(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);

// Graphs of a node, lowered for the values that they capture.
class OnnxSubgraphs {
 public:
  // `name` is the node's. All must outlive this.
  OnnxSubgraphs(OnnxBuilder& builder, std::string name)
      : builder_(builder), name_(std::move(name)) {}

  // Finds what the graph reads of the scope around it. Unimplemented, with the message
  // kOnnxGraphFailed, when something of that is not supported.
  Status Capture(const OnnxGraph& graph);
  // The captured values that are not known yet, each once: functions take them as arguments.
  const Values& arguments() const { return arguments_; }

  // Lowers the graph's outputs `wanted` into a target. `inputs` are its own inputs, `captured`
  // stand for arguments(). A value that could not be made is kNoValue and listed.
  Result<Values> Lower(const OnnxGraph& graph, OnnxTarget& target, std::span<const ValueId> inputs,
                       std::span<const ValueId> captured, std::span<const size_t> wanted);
  // The same into the target around the node.
  Result<Values> LowerHere(const OnnxGraph& graph, std::span<const ValueId> inputs,
                           std::span<const size_t> wanted) {
    return Lower(graph, builder_.scope().target, inputs, arguments_, wanted);
  }

  OnnxBuilder& builder() { return builder_; }
  const std::string& name() const { return name_; }

 private:
  OnnxBuilder& builder_;
  const std::string name_;
  std::unordered_map<std::string_view, ValueId> captured_;
  Values arguments_;
};

}  // namespace oncilla
