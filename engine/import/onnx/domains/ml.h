// What ops of ai.onnx.ml have in common.
#pragma once

#include <string_view>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// Applies attribute post_transform (a name) to scores [N, E].
Result<ValueId> AddPostTransform(OnnxLowering& b, ValueId scores, std::string_view transform,
                                 std::string_view role);

// Input 0 as f32 [N, F]; a vector is one row, but fails the run if its rank is unknown at import.
Result<ValueId> AddRows(OnnxLowering& b);

// Converts one score [N, 1] for two classes to scores of both, after attribute post_transform.
// Except with LOGISTIC, ONNX Runtime gives the first class 1 minus the score, which it does not
// transform.
Result<ValueId> AddBothScores(OnnxLowering& b, ValueId score, std::string_view transform);

// The label of the largest score of each row, from the attributes `ints` and `strings`, of which
// one must have `classes` entries.
Result<ValueId> AddTopLabel(OnnxLowering& b, ValueId scores, int64_t classes, std::string_view ints,
                            std::string_view strings);

// The labels of the class indices `place` [N], from the same attributes.
Result<ValueId> AddLabelAt(OnnxLowering& b, ValueId place, int64_t classes, std::string_view ints,
                           std::string_view strings);

}  // namespace oncilla
