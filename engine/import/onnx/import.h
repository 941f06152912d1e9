// Importing: from an ONNX graph, fed and fetched tensors to a Module of canonical ops.
//
// Only nodes that the fetched tensors need are considered, in an order in which each comes after
// what it reads, whatever their order in the file. Calls of the model's own functions are inlined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {

struct OnnxImportRequest {
  // Any tensors of the graph by name, with what is known of dtype and shape.
  std::vector<TensorInfo> inputs;
  std::vector<std::string> outputs;
  // What is known of the tensors that are fed, in the order of inputs; may be empty.
  Facts fed = {};
  // Leave out inputs that no output needs.
  bool only_needed_inputs = false;
};

// Unimplemented lists everything that is not supported at once: ops, the reason if an op is
// supported but not in this form, and the nodes. Other failures name the node.
Result<Module> ImportOnnx(const OnnxModel& model, const OnnxImportRequest& request,
                          const OnnxContext& context, const std::shared_ptr<const OpSet>& ops);

// What is known of an input of the graph. Unknown sizes get names, so that a reshape back to them
// is recognised. `fed` is what is known of the tensor that is fed for it; may be null.
Result<Fact> OnnxInputFact(const TensorInfo& info, const Fact* fed = nullptr);

}  // namespace oncilla
