// Control inputs: inputs, invisible to clients, through which the server tells a model about the
// sequence of a request.
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

// Removes the controls from the model's inputs. InvalidArgument if the model does not have one as
// declared.
absl::StatusOr<std::vector<ControlTensor>> FindControls(const ModelConfig& config,
                                                        ModelMetadata& metadata);

// Appends the controls to a request's inputs, in their order; nothing for a request without a
// sequence. InvalidArgument if the sequence's id is not of the type that the model accepts.
absl::Status AddControls(const std::vector<ControlTensor>& controls, InferRequest& request);

}  // namespace oncilla::server
