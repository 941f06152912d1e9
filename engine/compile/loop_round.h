// One round of a loop as one graph: its body, and its condition on what the body gives. A round is
// then one call instead of two, which matters for the many loops whose bodies take microseconds.
#pragma once

#include <optional>
#include <string>

#include "engine/graph/graph.h"
#include "engine/ops/control.h"

namespace oncilla {

// The name under which a CompiledGraph keeps the round of this loop, if it has one.
std::string RoundName(const WhileAttrs& loop);

// The body with one output more, the condition's. Nothing if the condition has effects, depends on
// more than its inputs, or does not fit what the body gives.
std::optional<Graph> RoundOf(const Graph& body, const Graph& cond);

}  // namespace oncilla
