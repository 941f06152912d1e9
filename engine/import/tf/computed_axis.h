// Ops along an axis that is computed at run time. The canonical ops have their axis as an
// attribute, so the data is brought into a form with a known axis, by shapes and permutations that
// are known when a plan is made. An axis out of range fails in the gather that maps it to [0,
// rank).
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

// Whether input i is an axis that is unknown at import.
inline bool IsComputed(const TfLowering& b, size_t i) { return !AllIntsKnown(b.in_fact(i)); }

// The concatenation of `parts` along `axis`.
Result<Values> ConcatAlong(TfLowering& b, const Values& parts, ValueId axis);
// The sizes of equal parts. They do not add up to an axis that cannot be divided evenly, so that
// the Split fails then.
Result<ValueId> EqualSizes(TfLowering& b, ValueId x, int64_t axis, int64_t parts);
// x split into `parts`, of equal size if `sizes` is kNoValue.
Result<Values> SplitAlong(TfLowering& b, ValueId x, ValueId sizes, ValueId axis, int64_t parts);
// ArgMax and ArgMin; the axis in `attrs` is ignored.
Result<Values> ArgAlong(TfLowering& b, std::string_view op, ArgAttrs attrs, ValueId x,
                        ValueId axis);
// TensorFlow's GatherV2 with batch_dims >= 0.
Result<Values> GatherAlong(TfLowering& b, ValueId x, ValueId indices, ValueId axis,
                           int64_t batch_dims);

}  // namespace oncilla
