// What attention ops of ONNX and of com.microsoft have alike: heads taken apart and put together,
// masks as a bias, rotations by place.
#pragma once

#include <string>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// [N, L, heads * size] as [N, heads, L, size], and back.
Result<ValueId> SplitHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name);
Result<ValueId> JoinHeads(OnnxLowering& b, ValueId x, std::string_view role);

// The size of an axis of a tensor of rank 4, which must be known.
Result<int64_t> KnownSize(OnnxLowering& b, ValueId x, int axis, std::string_view what);

// The size of an axis as a number of rank 0.
Result<ValueId> SizeOf(OnnxLowering& b, ValueId x, int axis, const std::string& name);

// Keys or values [N, own heads, S, size], each head as often as queries share it.
Result<ValueId> ShareHeads(OnnxLowering& b, ValueId x, int64_t heads, const std::string& name);

// Which keys a query may not see because of where both stand: bool, stretching to [N, heads, L, S].
struct HiddenKeys {
  bool causal = false;
  int64_t left = -1, right = -1;  // how far a query sees; -1 is without bound
  ValueId past = kNoValue;        // [N, heads, P, size]: keys before the first query
  ValueId valid = kNoValue;       // i64[N]: keys that are no padding, the last ones the queries'
  ValueId start = kNoValue;       // i64[N]: where the first query stands, if not as `valid` says
  bool nothing() const { return !causal && left < 0 && right < 0 && valid == kNoValue; }
};
// kNoValue when none is hidden. `queries` and `keys` are [N, heads, L or S, size].
Result<ValueId> AddHidden(OnnxLowering& b, const HiddenKeys& rule, ValueId queries, ValueId keys);

// A float or bool mask (true: to be seen) and hidden keys as numbers to add to scores of `dtype`.
// Either may be kNoValue, and so may the result.
Result<ValueId> AddMaskBias(OnnxLowering& b, ValueId mask, ValueId hidden, DType dtype, double off);

// q, k, v by head and what else goes into Attention; kNoValue where there is none.
struct AttentionParts {
  ValueId q = kNoValue, k = kNoValue, v = kNoValue, mask = kNoValue;
  ValueId lengths = kNoValue, starts = kNoValue, sink = kNoValue;
};
// Queries stand behind the keys of `past` [N, heads, P, size]; `own` are the keys that came with
// them.
Status PlaceBehind(OnnxLowering& b, ValueId past, ValueId own, AttentionAttrs& attrs,
                   AttentionParts& parts);
// The op, by head as its operands are. A mask of lower rank is one for all heads or samples.
Result<ValueId> AddAttention(OnnxLowering& b, const AttentionAttrs& attrs, AttentionParts parts,
                             std::string_view role);

// Pairs of numbers in the last axis of x [N, L, heads, size] (or with heads and places swapped)
// turned by angles, whose cosines and sines stretch to [N, L, heads, turned / 2].
Result<ValueId> AddRotation(OnnxLowering& b, ValueId x, ValueId cosine, ValueId sine,
                            int64_t turned, bool interleaved);

}  // namespace oncilla
