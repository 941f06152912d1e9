// A pass reads a graph and returns a patch. The pipeline (pipeline.cc) is the ordered list.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/device.h"
#include "engine/graph/patch.h"

namespace oncilla {

struct PassContext {
  // Index 0 is the CPU, which also computes what is folded.
  std::span<Device* const> devices;
  // The most bytes one folded constant may have.
  int64_t max_folded_bytes = int64_t{1} << 28;
  // The functions that control flow calls, as imported; none are known when null.
  const std::map<std::string, Graph>* functions = nullptr;
};

// Describes changes in `patch`, made for `graph`. An empty patch means nothing to do.
using PassFunction = Status (*)(const Graph& graph, const PassContext& context, Patch& patch);

struct Pass {
  std::string_view name;
  PassFunction run;
};

// Each in a file of its own name.
Status LowerBatchNorm(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldScales(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldScalesAhead(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseEpilogue(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldConstants(const Graph& graph, const PassContext& context, Patch& patch);
Status MergeDuplicates(const Graph& graph, const PassContext& context, Patch& patch);
Status MergeMovements(const Graph& graph, const PassContext& context, Patch& patch);
Status MoveTransposes(const Graph& graph, const PassContext& context, Patch& patch);
Status RemoveNoOps(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseActivations(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseLayerNorms(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseRecurrent(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseElementwise(const Graph& graph, const PassContext& context, Patch& patch);
Status Simplify(const Graph& graph, const PassContext& context, Patch& patch);
Status SimplifyLists(const Graph& graph, const PassContext& context, Patch& patch);

// Passes before placement; after it (fusions inside one device's part); and last, what takes
// whatever the fusions before it have left.
std::span<const Pass> GraphPasses();
std::span<const Pass> DevicePasses();
std::span<const Pass> LastPasses();

struct PipelineOptions {
  bool verify = false;
  // Called with the graph after each pass that changed it, for inspect and golden tests.
  std::function<void(std::string_view pass, const Graph& graph)> observe;
};

// Runs the passes in order, all of them again while any changes something (bounded).
Result<Graph> RunPasses(Graph graph, std::span<const Pass> passes, const PassContext& context,
                        const PipelineOptions& options);

}  // namespace oncilla
