// Lowering of nodes with graphs: branches and loops. Their graphs become functions of the Module;
// the values that these read from enclosing graphs, their captures, become arguments.
#pragma once

#include "engine/import/onnx/builder.h"

namespace oncilla {

// If, Loop, Scan and SequenceMap of ai.onnx, FlexAttention of ai.onnx.preview with graphs, Gradient
// of ai.onnx.preview.training, which reads the graph around it, and AttnLSTM of com.microsoft,
// which is a loop here.
bool IsOnnxControl(const OnnxNode& node);

// Lowers such a node in the builder's scope. Absent `inputs` are kNoValue.
Result<Values> LowerOnnxControl(OnnxBuilder& builder, const OnnxNode& node, int64_t version,
                                Values inputs);

Result<Values> LowerOnnxGradient(OnnxBuilder& builder, OnnxLowering& b);
Result<Values> LowerOnnxFlexAttention(OnnxBuilder& builder, OnnxLowering& b);
Result<Values> LowerOnnxAttnLstm(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);

// The graphs of a node, lowered with the values that they capture.
class OnnxSubgraphs {
 public:
  // `name` is the node's. All must outlive this.
  OnnxSubgraphs(OnnxBuilder& builder, std::string name)
      : builder_(builder), name_(std::move(name)) {}

  // Finds what the graph reads from the enclosing scope. Unimplemented, with the message
  // kOnnxGraphFailed, when one of these values is not supported.
  Status Capture(const OnnxGraph& graph);
  // The captured values that are not constants known already, each once: functions take them as
  // arguments.
  const Values& arguments() const { return arguments_; }

  // Lowers the graph's outputs `wanted` into a target. `inputs` are its own inputs, `captured`
  // correspond to arguments(). A value that could not be computed is kNoValue and in the list.
  Result<Values> Lower(const OnnxGraph& graph, OnnxTarget& target, std::span<const ValueId> inputs,
                       std::span<const ValueId> captured, std::span<const size_t> wanted);
  // The same for the target around the node.
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
