// The states that a configuration declares, found among a model's inputs and outputs.
#pragma once

#include "server/core/request.h"
#include "server/model/config.h"
#include "server/model/sequences.h"

namespace oncilla::server {

// Removes the states from the model's inputs and outputs, since clients neither send nor receive
// them; an output that the configuration also declares stays. Completes the configuration's states
// by the types and sizes of the model. InvalidArgument if the model does not have a state as
// declared.
absl::StatusOr<SequenceOptions> FindStates(ModelConfig& config, ModelMetadata& metadata);

// Adds the variables of sequences to the states; a sequence begins with their current values.
absl::Status FindVariables(const ModelConfig& config, const ModelMetadata& metadata,
                           const Model& model, SequenceOptions& options);

}  // namespace oncilla::server
