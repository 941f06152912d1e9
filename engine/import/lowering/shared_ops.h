// Ops that several formats have alike, and that take a few canonical nodes. Unless it says
// otherwise, the inputs are those of TensorFlow and TFLite; what TensorFlow has as attributes and
// TFLite as options is an argument.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// Input i, paddings as (before, after) per axis, as all befores and then all afters.
Result<ValueId> PadsOf(Lowering& b, size_t i);
// Inputs x, begin, size.
Result<Values> LowerSliceBySize(Lowering& b);
// Inputs x, update, start: x with the update in place of what begins there; a start at which the
// update would not fit moves until it does.
Result<Values> LowerDynamicUpdateSlice(Lowering& b);
// Inputs x, sizes, axis.
Result<Values> LowerSplitSizes(Lowering& b);
// All inputs beside each other, along a new axis; and one input taken apart again.
Result<Values> LowerPackParts(Lowering& b, int64_t axis);
Result<Values> LowerUnpackParts(Lowering& b, int64_t axis, int64_t count);
// Inputs indices, depth, on, off.
Result<Values> LowerOneHotRows(Lowering& b, int64_t axis);
// The coordinates of what is true or not zero, a row each.
Result<Values> LowerPlaces(Lowering& b);
// x with `more` (i64[]) axes of size one behind its own.
Result<ValueId> WithTrailingAxes(Lowering& b, ValueId x, ValueId more, std::string_view role);
// x where the condition holds, else y, each stretched to the shape of all; strings too.
Result<ValueId> Choose(Lowering& b, ValueId condition, ValueId x, ValueId y,
                       std::string_view role = "");
// Inputs condition, x, y.
Result<Values> LowerSelectRows(Lowering& b);
// All inputs added up.
Result<Values> LowerSum(Lowering& b);

}  // namespace oncilla
