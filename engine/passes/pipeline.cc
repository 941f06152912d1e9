// The ordered lists of passes, and the loop that runs them.
#include "engine/base/work_limits.h"
#include "engine/graph/verify.h"
#include "engine/passes/pass.h"

namespace oncilla {

std::span<const Pass> GraphPasses() {
  static constexpr Pass kPasses[] = {
      {"remove no-ops", &RemoveNoOps},
      {"restore axes", &RestoreAxes},
      {"merge duplicates", &MergeDuplicates},  // exporters may quantise a value once per reader
      {"integer products", &IntegerProducts},
      {"keep packed", &KeepPacked},
      {"move integers", &MoveIntegers},
      {"store unsigned bytes", &StoreUnsignedBytes},
      {"add and multiply bytes", &AddAndMultiplyBytes},
      {"round pools", &RoundPools},
      {"make byte tables", &MakeByteTables},
      {"fixed arithmetic", &FixedArithmetic},
      {"move transposes", &MoveTransposes},
      {"simplify", &Simplify},
      {"simplify lists", &SimplifyLists},
      {"merge movements", &MergeMovements},
      {"lower batch norm", &LowerBatchNorm},
      {"fold scales", &FoldScales},
      {"fold scales ahead", &FoldScalesAhead},
      {"fold constants", &FoldConstants},
      {"merge duplicates", &MergeDuplicates},
      {"recognise activations", &RecogniseActivations},
      {"recognise layer norms", &RecogniseLayerNorms},
      {"recognise recurrent", &RecogniseRecurrent},
      {"recognise attention", &RecogniseAttention},
      {"move heads", &MoveHeads},
      {"merge projections", &MergeProjections},
      {"read columns", &ReadColumns},
  };
  return kPasses;
}

std::span<const Pass> DevicePasses() {
  static constexpr Pass kPasses[] = {
      {"fuse epilogue", &FuseEpilogue},
      {"fuse requantize", &FuseRequantize},
      {"fold constants", &FoldConstants},
  };
  return kPasses;
}

std::span<const Pass> NarrowingPasses() {
  static constexpr Pass kPasses[] = {{"reduced precision", &NarrowStorage}};
  return kPasses;
}

std::span<const Pass> LastPasses() {
  static constexpr Pass kPasses[] = {
      {"lower quantisation", &LowerQuantisation},
      {"fuse inverted residuals", &FuseInvertedResiduals},
      {"fuse gates", &FuseGates},
      {"fuse elementwise", &FuseElementwise},
  };
  return kPasses;
}

Result<Graph> RunPasses(Graph graph, std::span<const Pass> passes, const PassContext& context,
                        const PipelineOptions& options) {
  for (int round = 0; round < options.max_rounds; ++round) {
    bool changed = false;
    for (const Pass& pass : passes) {
      ONCILLA_TRY(WorkLook::Ask());
      Patch patch(graph);
      ONCILLA_TRY(In(pass.run(graph, context, patch), StrCat("pass '", pass.name, "'")));
      if (patch.empty()) continue;
      auto next = patch.Apply();
      if (!next.ok()) return In(next.status(), StrCat("pass '", pass.name, "'"));
      graph = *std::move(next);
      if (options.verify) ONCILLA_TRY(In(Verify(graph), StrCat("after pass '", pass.name, "'")));
      if (options.observe) options.observe(pass.name, graph);
      changed = true;
    }
    if (!changed) break;
  }
  return graph;
}

}  // namespace oncilla
