// CompiledGraph: the first of three stages. Made once per (model, feeds and fetches, placement):
// passes, placement, fusion, constants packed. Sizes may still be unknown; nothing here depends on
// them. Plans (plan.h) specialise it, instances (instance.h) bind a plan to memory.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compile/constants.h"
#include "engine/passes/pass.h"
#include "engine/passes/precision.h"
#include "engine/placement/placer.h"

namespace oncilla {

struct CompileOptions {
  PlacementOptions placement;
  StorageRequest precision = {};
  bool verify = false;
  // Of the run that waits for it, if one does: ends the uploading of constants early.
  RunControl control = {};
  // See PipelineOptions::observe; also called with "imported" and "placed".
  std::function<void(std::string_view stage, const Graph& graph)> observe;
};

struct CompiledGraph {
  explicit CompiledGraph(Graph g) : graph(std::move(g)) {}

  Graph graph;
  PlacementReport placement;
  PrecisionReport precision = {};
  // Per value: its contents fix a shape somewhere, so they belong to a plan's key.
  std::vector<bool> fixes_shapes;
  // Constant inputs as their kernels want them, on the node's device: (node, input) -> memory,
  // which the model's ConstantStore owns.
  std::map<std::pair<uint32_t, int>, BufferView> packed;
  // The functions that its control flow calls, by name, compiled as graphs of their own.
  std::map<std::string, std::shared_ptr<const CompiledGraph>, std::less<>> functions;
  // Some node of it, or of its functions, assigns a variable.
  bool writes_variables = false;
};

// `devices[0]` is the CPU. Failures have Stage::kCompile. Of the functions, those are compiled that
// are called after the passes; one that calls itself is refused.
Result<std::shared_ptr<const CompiledGraph>> Compile(Module module,
                                                     std::span<Device* const> devices,
                                                     std::span<const std::string> device_names,
                                                     ConstantStore& constants,
                                                     const CompileOptions& options);

}  // namespace oncilla
