// Loops of all kinds: a While whose body carries values, reads others, and collects some in lists.
#pragma once

#include <functional>
#include <optional>

#include "engine/import/onnx/control.h"

namespace oncilla {

Result<Values> LowerOnnxLoop(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);
Result<Values> LowerOnnxScan(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);
Result<Values> LowerOnnxSequenceMap(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b);

// What one round gives. A value that could not be made is kNoValue, and listed.
struct OnnxRound {
  ValueId more = kNoValue;  // bool[]; none: for ever true
  Values carried;
  Values collected;
};

// What a round is made for. Values are those of the body's graph.
struct OnnxRoundInputs {
  OnnxTarget& body;
  ValueId number;  // i64[], from 0 on
  ValueId more;    // bool[]: the condition that this round was begun for
  std::span<const ValueId> carried;
  std::span<const ValueId> read;
};

struct OnnxLoopSpec {
  std::string name;
  ValueId limit = kNoValue;   // i64[]: the most rounds; none: no limit
  ValueId more = kNoValue;    // bool[]: false for no round at all; none: true
  bool ignores_more = false;  // no condition was given, so that a round's must be for ever true
  Values carried;
  Values read;  // by every round
  // Adds a round to a body; called again while the types of what is carried have not settled.
  std::function<Result<OnnxRound>(const OnnxRoundInputs&)> round;
};

struct OnnxLoopResults {
  Values carried;
  Values lists;  // of what was collected
};

// Adds a While to the target. Unimplemented, with the message kOnnxGraphFailed, when the body holds
// something unsupported.
Result<OnnxLoopResults> AddOnnxLoop(OnnxImportState& state, OnnxTarget& target,
                                    const OnnxLoopSpec& spec);

// What a scan output is: the collected values stacked along an axis. The sizes that the file states
// for one of them are those of a loop without any round.
Result<ValueId> StackOnnxRounds(Graph& graph, ValueId list, int64_t axis, const OnnxType& stated,
                                const std::string& name);

}  // namespace oncilla
