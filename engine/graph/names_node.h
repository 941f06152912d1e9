// Which nodes an entry of an option names.
#pragma once

#include <string_view>

#include "engine/graph/graph.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

// An entry is a pattern of names of nodes of the model's file ("layer1/*"), or "op:" and an op, in
// the engine's words or the file's ("op:Conv2D"), for which `sources` is asked; it may be null.
bool NamesNode(std::string_view entry, const Node& node, const SourceNodes* sources);

}  // namespace oncilla
