// CompiledGraph: the first of three stages. Made once per (model, feeds and fetches, placement):
// passes, placement, fusion, constants packed. Sizes may still be unknown; nothing here depends on
// them. Plans (plan.h) specialise it, instances (instance.h) bind a plan to memory.
#pragma once

#include <map>
#include <set>
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
  // The limits of the run that waits for the compilation, if there is one; they end the upload of
  // constants early.
  RunControl control = {};
  // See PipelineOptions::observe; also called with "imported" and "placed".
  GraphObserver observe;
};

struct CompiledGraph {
  explicit CompiledGraph(Graph g) : graph(std::move(g)) {}

  Graph graph;
  PlacementReport placement;
  PrecisionReport precision = {};
  // Per value: whether its contents fix a shape somewhere. They are then part of a plan's key.
  std::vector<bool> fixes_shapes;
  // Constant inputs in the layout that their kernels want, on the node's device: (node, input) ->
  // memory that the model's ConstantStore owns.
  std::map<std::pair<uint32_t, int>, BufferView> packed;
  // The functions that its control flow calls, by name, compiled as graphs of their own.
  std::map<std::string, std::shared_ptr<const CompiledGraph>, std::less<>> functions;
  // Those of them that are a round of a loop (loop_round.h): a model may call its own functions as
  // it likes.
  std::set<std::string, std::less<>> rounds;
  // Whether a node of the graph, or of its functions, assigns a variable.
  bool writes_variables = false;
};

// `devices[0]` is the CPU. Failures have Stage::kCompile. Only functions that are still called
// after the passes are compiled; a function that calls itself is refused.
Result<std::shared_ptr<const CompiledGraph>> Compile(Module module,
                                                     std::span<Device* const> devices,
                                                     std::span<const std::string> device_names,
                                                     ConstantStore& constants,
                                                     const CompileOptions& options);

}  // namespace oncilla
