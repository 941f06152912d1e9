// Matches a node against an entry of an option that lists nodes.
#pragma once

#include <string_view>

#include "engine/graph/graph.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

// An entry is a pattern of node names as in the model's file ("layer1/*"), or "op:" and an op type,
// by the engine's name or the file's ("op:Conv2D"). The latter is looked up in `sources`, which may
// be null.
bool NamesNode(std::string_view entry, const Node& node, const SourceNodes* sources);

}  // namespace oncilla
