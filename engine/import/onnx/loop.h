// Lowers loops of all kinds to a While whose body carries values, reads others, and collects some
// in lists.
#pragma once

#include <functional>
#include <optional>

#include "engine/import/onnx/control.h"

namespace oncilla {

Result<Values> LowerOnnxLoop(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);
Result<Values> LowerOnnxScan(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);
Result<Values> LowerOnnxSequenceMap(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);

// The results of one iteration. A value that could not be computed is kNoValue, and in the list.
struct OnnxRound {
  ValueId more = kNoValue;  // bool[]; none: always true
  Values carried;
  Values collected;
};

// The inputs of an iteration. Values are those of the body's graph.
struct OnnxRoundInputs {
  OnnxTarget& body;
  ValueId number;  // i64[], starting at 0
  ValueId more;    // bool[]: the condition under which this iteration began
  std::span<const ValueId> carried;
  std::span<const ValueId> read;
};

struct OnnxLoopSpec {
  std::string name;
  ValueId limit = kNoValue;   // i64[]: the most iterations; none: no limit
  ValueId more = kNoValue;    // bool[]: false for no iteration at all; none: true
  bool ignores_more = false;  // no condition was given, so that an iteration's must always be true
  Values carried;
  Values read;  // by every iteration
  // Adds an iteration to a body; called again until the types of the carried values no longer
  // change.
  std::function<Result<OnnxRound>(const OnnxRoundInputs&)> round;
};

struct OnnxLoopResults {
  Values carried;
  Values lists;  // of the collected values
};

// Adds a While to the target. Unimplemented, with the message kOnnxGraphFailed, when the body
// contains something unsupported.
Result<OnnxLoopResults> AddOnnxLoop(OnnxImportState& state, OnnxTarget& target,
                                    const OnnxLoopSpec& spec);

// A scan output: the collected values stacked along an axis. If the loop has no iteration, their
// sizes are those that the file states for one of them.
Result<ValueId> StackOnnxRounds(Graph& graph, ValueId list, int64_t axis, const OnnxType& stated,
                                const std::string& name);

}  // namespace oncilla
