#pragma once
#include "engine/passes/pass.h"
namespace oncilla {
Status FuseInvertedResiduals(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseGates(const Graph& graph, const PassContext& context, Patch& patch);
}  // namespace oncilla
