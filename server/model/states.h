// The states that a configuration declares, found among a model's inputs and outputs.
#pragma once

#include "server/core/request.h"
#include "server/model/config.h"
#include "server/model/sequences.h"

namespace oncilla::server {

// Takes the states out of the model's inputs and outputs, since clients neither send nor get them;
// an output that the configuration declares besides stays. Completes the configuration's states by
// the types and sizes of the model. InvalidArgument where a state is not as the model has it.
absl::StatusOr<SequenceOptions> FindStates(ModelConfig& config, ModelMetadata& metadata);

// Adds the variables of sequences to the states; a sequence begins with the values that they have
// now.
absl::Status FindVariables(const ModelConfig& config, const ModelMetadata& metadata,
                           const Model& model, SequenceOptions& options);

}  // namespace oncilla::server
