// Importing: from a TensorFlow graph, fed and fetched tensors to a Module of canonical ops.
//
// The graph is flattened from the fetches (graph/functions.h), then every node is lowered by its
// row (lowering.h) in an order in which each comes after what it reads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/graph/graph.h"

namespace oncilla {

struct TfImportRequest {
  // Inputs and outputs by the names that the Module gives them; `source` is the tensor in the file,
  // dtype and shape are those of the signature, as far as it has them.
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  std::vector<std::string> targets = {};  // nodes to run for their effects
  // What is known of the tensors that are fed, in the order of `inputs`, or empty: see
  // ImportRequest.
  Facts fed = {};
  // Leave out inputs that no output needs.
  bool only_needed_inputs = false;
  std::function<Result<Tensor>(const TfNode&)> variable;
  // The initial contents of a table that changes; may be empty: then all are empty.
  std::function<Result<std::optional<TfTableContents>>(const TfNode&)> table = {};
  // See TfFlattenRequest; may be empty.
  std::function<bool(std::string_view)> is_state;
  std::function<bool(std::string_view)> only_effects_on;
  // Receives the nodes that were imported; may be null.
  SourceNodes* source_nodes = nullptr;
};

// Unimplemented lists everything that is not supported at once: ops, the reason if an op is
// supported but not in this form, and the nodes. Other failures name the node.
Result<Module> ImportTf(TfGraph& graph, const TfImportRequest& request,
                        const std::shared_ptr<const OpSet>& ops);

}  // namespace oncilla
