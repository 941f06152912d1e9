// The elements of tensors as JSON: the member `data`, nested as the shape is or flat.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/core/tensor_codec.h"

namespace oncilla::server {

// InvalidArgument where the numbers are not as many as the shape wants, are nested otherwise, or do
// not fit the type.
absl::StatusOr<Tensor> TensorFromJson(const TensorSpec& spec, const nlohmann::json& data);
// Appends a flat list. InvalidArgument for numbers that are not finite, strings that are no UTF-8,
// and types of 16 bits.
absl::Status AppendJsonData(const std::string& name, const Tensor& tensor, std::string& json);

}  // namespace oncilla::server
