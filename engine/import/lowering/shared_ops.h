// Ops that several formats have in common and that take a few canonical nodes. Unless a comment
// says otherwise, the inputs are those of TensorFlow and TFLite; TensorFlow's attributes and
// TFLite's options are arguments.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

// Input i, paddings as (before, after) per axis, converted to all befores and then all afters.
Result<ValueId> PadsOf(Lowering& b, size_t i);
// Inputs x, begin, size.
Result<Values> LowerSliceBySize(Lowering& b);
// Inputs x, update, start: x with the update written at start; a start at which the update would
// extend beyond x is moved until it fits.
Result<Values> LowerDynamicUpdateSlice(Lowering& b);
// Inputs x, start, sizes: the part of x of these known sizes, from start on, moved in the same way.
Result<Values> LowerDynamicSlice(Lowering& b);
// The same of any values.
Result<ValueId> DynamicUpdateSlice(Lowering& b, ValueId x, ValueId update, ValueId start);
Result<ValueId> DynamicSlice(Lowering& b, ValueId x, ValueId start,
                             const std::vector<int64_t>& sizes);
// Inputs x, sizes, axis.
Result<Values> LowerSplitSizes(Lowering& b);
// All inputs stacked along a new axis; and one input unstacked.
Result<Values> LowerPackParts(Lowering& b, int64_t axis);
Result<Values> LowerUnpackParts(Lowering& b, int64_t axis, int64_t count);
// Inputs indices, depth, on, off.
Result<Values> LowerOneHotRows(Lowering& b, int64_t axis);
// The indices of elements that are true or not zero, one row each.
Result<Values> LowerPlaces(Lowering& b);
// x with `more` (i64[]) axes of size one after its own.
Result<ValueId> WithTrailingAxes(Lowering& b, ValueId x, ValueId more, std::string_view role);
// x where the condition is true, else y, each broadcast to the shape of all; strings too.
Result<ValueId> Choose(Lowering& b, ValueId condition, ValueId x, ValueId y,
                       std::string_view role = "");
// Inputs condition, x, y.
Result<Values> LowerSelectRows(Lowering& b);
// The sum of all inputs.
Result<Values> LowerSum(Lowering& b);

}  // namespace oncilla
