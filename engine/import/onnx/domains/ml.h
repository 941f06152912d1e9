// What ops of ai.onnx.ml have alike.
#pragma once

#include <string_view>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// Attribute post_transform (a name) on scores [N, E].
Result<ValueId> AddPostTransform(OnnxLowering& b, ValueId scores, std::string_view transform,
                                 std::string_view role);

// Input 0 as f32 [N, F]; a vector is one row, but fails the run if its rank is not known before.
Result<ValueId> AddRows(OnnxLowering& b);

// One score [N, 1] of two classes as scores of both, after attribute post_transform. Except with
// LOGISTIC, ONNX Runtime gives the first class 1 minus the score, which it does not transform.
Result<ValueId> AddBothScores(OnnxLowering& b, ValueId score, std::string_view transform);

// The label of the largest score of each row, after attributes `ints` and `strings`, of which one
// must have `classes` entries.
Result<ValueId> AddTopLabel(OnnxLowering& b, ValueId scores, int64_t classes, std::string_view ints,
                            std::string_view strings);

// The labels at `place` [N], which counts classes, after the same attributes.
Result<ValueId> AddLabelAt(OnnxLowering& b, ValueId place, int64_t classes, std::string_view ints,
                           std::string_view strings);

}  // namespace oncilla
