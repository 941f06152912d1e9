// TensorFlow's messages for invalid feeds and fetches, word for word, so that its users recognise
// them; callers may append the engine's own text and near names.
#pragma once

#include <string>

#include "engine/import/model_source.h"
#include "engine/tensor/tensor.h"

namespace oncilla::tf_messages {

std::string UnknownFeed(std::string_view tensor);
std::string UnknownFetch(std::string_view tensor);
std::string UnknownTarget(std::string_view node);
// For an index beyond the `outputs` outputs of a node.
std::string NoSuchOutput(std::string_view tensor, std::string_view node, int64_t outputs);
std::string NotATensorName(std::string_view text);
std::string FedTwice(std::string_view tensor);
std::string FedAndFetched(std::string_view tensor);
std::string NothingAsked();
std::string PlaceholderNotFed(std::string_view node, DType dtype, const PartialShape& shape);

// Why a tensor cannot be fed where `wanted` is expected; empty when it can.
std::string DoesNotFit(std::string_view name, const Fact& wanted, const Tensor& tensor);

}  // namespace oncilla::tf_messages
