// TensorFlow's own ops in a TFLite file ("select ops"): custom ops named Flex plus the op, whose
// options contain the node in TensorFlow's form. They are lowered by the rows of engine/import/tf.
#pragma once

#include <memory>

#include "engine/import/lowering/lowering.h"
#include "engine/import/tf/graph/graph.h"
#include "engine/import/tflite/reader.h"

namespace oncilla {

// "FlexErf" and the like.
bool IsFlexOp(const TfliteOp& op);

// The node of such an op, as the only node of a graph.
Result<std::unique_ptr<TfGraph>> FlexNodeOf(const TfliteOp& op);

// The outputs of such an op; the node that is added last gets the op's own name. `complex`: an
// input has complex numbers. Unimplemented for an op that has no row, or works on handles of
// variables and tables.
Result<Values> LowerFlexOp(Module& module, Graph& graph, const TfliteOp& op,
                           const std::string& name, Values inputs, bool complex);

}  // namespace oncilla
