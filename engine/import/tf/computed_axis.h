// Ops along an axis that is computed while running. The canonical ops have their axis as an
// attribute, so the data is brought into a form whose axis is known, by shapes and permutations
// that are settled when a plan is made. An axis out of range fails in the gather that makes it one
// in [0, rank).
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

// True where input i is an axis that is not known while importing.
inline bool IsComputed(const TfLowering& b, size_t i) { return !AllIntsKnown(b.in_fact(i)); }

// All of `parts` along `axis`.
Result<Values> ConcatAlong(TfLowering& b, const Values& parts, ValueId axis);
// The sizes of parts of the same size, which do not fill an axis that cannot be divided so: the
// Split that they are for fails then.
Result<ValueId> EqualSizes(TfLowering& b, ValueId x, int64_t axis, int64_t parts);
// x in `parts`, of the same size where `sizes` is kNoValue.
Result<Values> SplitAlong(TfLowering& b, ValueId x, ValueId sizes, ValueId axis, int64_t parts);
// ArgMax and ArgMin; the axis of `attrs` is not read.
Result<Values> ArgAlong(TfLowering& b, std::string_view op, ArgAttrs attrs, ValueId x,
                        ValueId axis);
// TensorFlow's GatherV2 with batch_dims >= 0.
Result<Values> GatherAlong(TfLowering& b, ValueId x, ValueId indices, ValueId axis,
                           int64_t batch_dims);

}  // namespace oncilla
