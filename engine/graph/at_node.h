// Failures that name the node that they concern, as the model's file names it.
#pragma once

#include "engine/graph/graph.h"

namespace oncilla {

// What messages call a node: the one of the model that it was made for, where it is one alone.
const std::string& NameInModel(const Node& node);

// "node 'conv1' (Conv): " before the message, and the name as a detail.
Status AtNode(Status status, std::string_view name, std::string_view op);
Status AtNode(Status status, const Node& node);

}  // namespace oncilla
