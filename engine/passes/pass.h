// A pass reads a graph and returns a patch. The pipeline (pipeline.cc) is the ordered list.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/patch.h"

namespace oncilla {

struct PrecisionReport;
struct StorageRequest;

struct PassContext {
  // Index 0 is the CPU, which also computes what is folded.
  std::span<Device* const> devices;
  // The most bytes one folded constant may have.
  int64_t max_folded_bytes = int64_t{1} << 28;
  // The functions that control flow calls, as imported; none are known when null.
  const std::map<std::string, Graph>* functions = nullptr;
  // For each node the requested device, "" for none: equal nodes that are requested on different
  // devices are not merged. Null: nothing is requested.
  std::function<std::vector<std::string>(const Graph& graph)> wanted = nullptr;
  // What to store in 16 bits, and the report on it (precision.h); null: nothing.
  const StorageRequest* storage = nullptr;
  PrecisionReport* precision = nullptr;
};

// Describes changes in `patch`, which was made for `graph`. An empty patch means no change.
using PassFunction = Status (*)(const Graph& graph, const PassContext& context, Patch& patch);

struct Pass {
  std::string_view name;
  PassFunction run;
};

// Each is in a file of its own name, those for quantised networks in integers/.
Status RestoreAxes(const Graph& graph, const PassContext& context, Patch& patch);
Status LowerBatchNorm(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldScales(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldScalesAhead(const Graph& graph, const PassContext& context, Patch& patch);
Status IntegerProducts(const Graph& graph, const PassContext& context, Patch& patch);
Status MoveIntegers(const Graph& graph, const PassContext& context, Patch& patch);
Status StoreUnsignedBytes(const Graph& graph, const PassContext& context,
                          Patch& patch);  // unsigned_bytes.cc
Status AddAndMultiplyBytes(const Graph& graph, const PassContext& context,
                           Patch& patch);  // byte_arithmetic.cc
Status FixedArithmetic(const Graph& graph, const PassContext& context, Patch& patch);
Status MakeByteTables(const Graph& graph, const PassContext& context, Patch& patch);
Status LowerQuantisation(const Graph& graph, const PassContext& context, Patch& patch);
Status RoundPools(const Graph& graph, const PassContext& context, Patch& patch);  // the same file
Status KeepPacked(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseInvertedResiduals(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseGates(const Graph& graph, const PassContext& context, Patch& patch);  // the same file
Status FuseEpilogue(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseRequantize(const Graph& graph, const PassContext& context, Patch& patch);
Status FoldConstants(const Graph& graph, const PassContext& context, Patch& patch);
Status MergeDuplicates(const Graph& graph, const PassContext& context, Patch& patch);
Status MergeProjections(const Graph& graph, const PassContext& context, Patch& patch);
Status MoveHeads(const Graph& graph, const PassContext& context, Patch& patch);
Status ReadColumns(const Graph& graph, const PassContext& context, Patch& patch);
Status MergeMovements(const Graph& graph, const PassContext& context, Patch& patch);
Status NarrowStorage(const Graph& graph, const PassContext& context, Patch& patch);
Status MoveTransposes(const Graph& graph, const PassContext& context, Patch& patch);
Status RemoveNoOps(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseActivations(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseAttention(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseLayerNorms(const Graph& graph, const PassContext& context, Patch& patch);
Status RecogniseRecurrent(const Graph& graph, const PassContext& context, Patch& patch);
Status FuseElementwise(const Graph& graph, const PassContext& context, Patch& patch);
Status Simplify(const Graph& graph, const PassContext& context, Patch& patch);
Status SimplifyLists(const Graph& graph, const PassContext& context, Patch& patch);

// Passes before placement; after it (fusions within one device's part); then the pass that stores
// values in 16 bits, once; and last, elementwise fusion of what the earlier fusions have left.
std::span<const Pass> GraphPasses();
std::span<const Pass> DevicePasses();
std::span<const Pass> NarrowingPasses();
std::span<const Pass> LastPasses();

// Sees a graph after each stage, by the name of a pass or of a stage ("imported", "placed").
using GraphObserver = std::function<void(std::string_view stage, const Graph& graph)>;

struct PipelineOptions {
  bool verify = false;
  // Called with the graph after each pass that changed it, for inspect and golden tests.
  GraphObserver observe;
  // Each round leaves less to do; the bound only guards against two passes undoing each other.
  int max_rounds = 32;
};

// Runs the passes in order, and repeats them all as long as any changes something.
Result<Graph> RunPasses(Graph graph, std::span<const Pass> passes, const PassContext& context,
                        const PipelineOptions& options);

}  // namespace oncilla
