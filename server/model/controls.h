// Control inputs: what the server tells a model of the sequence that a request belongs to, through
// inputs which clients do not see.
#pragma once

#include <string>
#include <vector>

#include "server/core/request.h"
#include "server/model/config.h"

namespace oncilla::server {

// A declared control, found among the model's inputs.
struct ControlTensor {
  std::string input;
  ControlKind kind = ControlKind::kStart;
  oncilla_dtype dtype = ONCILLA_FLOAT32;
  std::vector<int64_t> shape;  // of one element
  Tensor no, yes;              // of all kinds but kId
};

// Takes the controls out of the model's inputs. InvalidArgument where one is not as the model has
// it.
absl::StatusOr<std::vector<ControlTensor>> FindControls(const ModelConfig& config,
                                                        ModelMetadata& metadata);

// Appends the controls to a request's inputs, in their order; nothing for a request of no sequence.
// InvalidArgument where the sequence's id is none of the type that the model takes.
absl::Status AddControls(const std::vector<ControlTensor>& controls, InferRequest& request);

}  // namespace oncilla::server
